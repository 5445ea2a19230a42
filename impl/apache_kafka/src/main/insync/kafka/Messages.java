package insync.kafka;

import insync.conform.Refused;
import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.server.storage.log.FetchPartitionData;

/**
 * Messages on their way: what a broker has sent is taken from it and held, and an answer is given
 * back to it.
 */
final class Messages {
  private static final Steps.Became DIVERGES =
      new Steps.Became("leader_answers_diverging", "the logs diverge");
  private static final Steps.Became AGREES =
      new Steps.Became("leader_answers_fetch", "the logs do not diverge");

  private Messages() {}

  // Fetches

  /** The follower sends what its fetcher thread would; false if it asks nobody. */
  static boolean send(Machine follower) {
    follower.fetch = new Machine.Fetch();
    Broker.Ask ask = follower.process.ask();
    if (ask == null) {
      return false;
    }
    Machine.Fetch fetch = follower.fetch;
    fetch.kind = "requested";
    fetch.to = ask.to();
    fetch.ask = ask;
    fetch.epoch = ask.partition().currentLeaderEpoch.orElse(-1);
    fetch.offset = (int) ask.partition().fetchOffset;
    fetch.last =
        withRecord(follower.process, ask.partition().lastFetchedEpoch.orElse(0), fetch.offset);
    return true;
  }

  /** Whether a request of this follower is on its way to a leader that would still take it. */
  static boolean lives(World world, int follower) {
    Machine.Fetch fetch = world.look(follower).fetch;
    if (!fetch.kind.equals("requested") || fetch.to == follower) {
      return false;
    }
    Machine leader = world.look(fetch.to);
    return leader.leads()
        && fetch.epoch == leader.process.leaderEpoch()
        && leader.process.replica(follower) != null;
  }

  /**
   * The largest epoch not above this one that has a record among the first ones of a log. The epoch
   * cache has an entry without a record for a leader that has not appended yet (difference B).
   */
  static int withRecord(Broker broker, int epoch, int end) {
    if (Steering.EXACT) {
      return epoch;
    }
    int best = 0;
    List<Broker.Row> rows = broker.rows();
    for (int i = 0; i < Math.min(end, rows.size()); i++) {
      int written = rows.get(i).epoch();
      best = written <= epoch ? Math.max(best, written) : best;
    }
    return best;
  }

  /** A leader answers a fetch: ReplicaManager.fetchMessages. */
  static Steps.Became answer(World world, int leader, int follower) {
    Machine.Fetch asked = world.look(follower).fetch;
    if (!asked.kind.equals("requested") || asked.to != leader) {
      throw Refused.because("no such request is on its way");
    }
    Machine at = world.alive(leader);
    Uuid topic = world.controller().topic();
    if (world.settings.ownView() && at.process.replica(follower) != null) {
      Parts.caughtUpNow(
          at.process.replica(follower),
          at.clock.now); // time never passes: see the model's own_view
    }
    at.process.busy = true; // what Kafka would propose now is a step of its own
    FetchPartitionData got =
        at.process.fetch(
            asked.ask.request().build(),
            Map.of(topic, Broker.PARTITION.topic()),
            !Steering.AT_ONCE);
    at.process.busy = false;
    if (got.error != Errors.NONE) {
      throw Refused.answer(got.error.name());
    }
    FetchResponse response = response(got, topic);
    Machine asks = world.look(follower);
    boolean waits = asks.process != null && asks.fetch.epoch == asks.process.leaderEpoch();
    boolean leftOver =
        got.divergingEpoch.isPresent()
            && waits
            && !Steering.EXACT
            && asked.ask.partition().lastFetchedEpoch.orElse(0) != asked.last
            && got.divergingEpoch.get().endOffset() >= asks.process.rows().size();
    if (leftOver && dropsEntry(world.at(follower), response)) {
      return answer(world, leader, follower);
    }
    if (waits) {
      hold(at.process, world.beside(follower).fetch, got, response);
    } else if (asks.process == null) {
      world.beside(follower).fetch = new Machine.Fetch();
    } else {
      Machine to = world.at(follower);
      to.process.answer(to.fetch.ask, response);
      to.fetch = new Machine.Fetch();
    }
    if (got.divergingEpoch.isPresent()) {
      return DIVERGES;
    }
    at.answeredFetchers |= 1 << follower;
    return AGREES;
  }

  /**
   * An entry without a record was left in the follower's epoch cache: it drops it, and asks again
   * (difference B). False if it drops none: then the answer stands as Kafka gave it.
   */
  private static boolean dropsEntry(Machine follower, FetchResponse response) {
    Broker process = follower.process;
    List<Broker.Row> before = process.rows();
    int entries = process.entries();
    process.answer(follower.fetch.ask, response);
    boolean drops = process.entries() < entries && before.equals(process.rows());
    send(follower);
    return drops;
  }

  private static void hold(
      Broker leader, Machine.Fetch fetch, FetchPartitionData got, FetchResponse response) {
    fetch.to = -1;
    fetch.offset = 0;
    fetch.last = 0;
    fetch.answer = response;
    if (got.divergingEpoch.isPresent()) {
      fetch.kind = "diverged";
      fetch.offset = (int) got.divergingEpoch.get().endOffset();
      fetch.last = withRecord(leader, got.divergingEpoch.get().epoch(), Integer.MAX_VALUE);
    } else {
      fetch.kind = "answered";
      fetch.watermark = (int) got.highWatermark;
      fetch.record = Broker.name(inMemory(got.records));
    }
  }

  /** What a leader has got for a follower, as its answer. */
  static FetchResponse response(FetchPartitionData got, Uuid topic) {
    FetchResponseData.PartitionData data =
        new FetchResponseData.PartitionData()
            .setPartitionIndex(Broker.PARTITION.partition())
            .setErrorCode(got.error.code())
            .setHighWatermark(got.highWatermark)
            .setLastStableOffset(got.lastStableOffset.orElse(-1))
            .setLogStartOffset(got.logStartOffset)
            .setRecords(inMemory(got.records));
    got.divergingEpoch.ifPresent(data::setDivergingEpoch);
    LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> all = new LinkedHashMap<>();
    all.put(new TopicIdPartition(topic, Broker.PARTITION), data);
    return FetchResponse.of(Errors.NONE, 0, 0, all, List.of());
  }

  /** Records as they are on the wire, whatever becomes of the file. */
  static MemoryRecords inMemory(Records records) {
    if (records instanceof MemoryRecords memory) {
      return memory;
    }
    if (records.sizeInBytes() == 0) {
      return MemoryRecords.EMPTY;
    }
    ByteBuffer buffer = ByteBuffer.allocate(records.sizeInBytes());
    try {
      ((FileRecords) records).readInto(buffer, 0);
    } catch (java.io.IOException problem) {
      throw new IllegalStateException(problem);
    }
    return MemoryRecords.readableRecords(buffer);
  }

  /** A follower takes an answer: AbstractFetcherThread.processFetchRequest. */
  static void take(World world, int follower, String kind) throws Exception {
    if (!world.look(follower).fetch.kind.equals(kind)) {
      throw Refused.because("no such answer is on its way");
    }
    Machine at = world.alive(follower);
    if (kind.equals("diverged")) { // ProducerStateManager.truncateAndReload lists the log's folder
      Disk.of(at.process, at.watermark(), null).prepare(follower, at.directory());
    }
    at.process.answer(at.fetch.ask, at.fetch.answer);
    send(at);
  }

  // AlterPartition

  /** The leader has put an AlterPartition on its way, for this in-sync set; false if it has not. */
  static boolean askController(Machine leader) {
    Broker process = leader.process;
    if (process.alterRequest == null) {
      return false;
    }
    Machine.Alter alter = new Machine.Alter();
    alter.kind = "requested";
    alter.request = process.alterRequest;
    alter.whenAnswered = process.whenAnswered;
    Set<Integer> members = process.isr();
    for (AlterPartitionRequestData.BrokerState proposed : alter.partition().newIsrWithEpochs()) {
      if (!members.contains(proposed.brokerId())) {
        alter.joiner = proposed.brokerEpoch();
      }
    }
    leader.alter = alter;
    process.alterRequest = null;
    process.whenAnswered = null;
    return true;
  }

  /** Whether the leader still waits for the answer to its AlterPartition. */
  static boolean hears(Machine leader) {
    Machine.Alter alter = leader.alter;
    return leader.leads()
        && alter.whenAnswered != null
        && !leader.process.pending().isEmpty()
        && leader.process.leaderEpoch() == alter.partition().leaderEpoch()
        && leader.process.partition().getPartitionEpoch() == alter.partition().partitionEpoch();
  }

  /**
   * The answer comes to the broker that asked: NodeToControllerRequestThread.handleResponse, which
   * calls DefaultAlterPartitionManager's completion handler.
   */
  static void tell(Machine leader, Machine.Alter alter) {
    if (alter.whenAnswered == null || alter.answer == null || leader.process == null) {
      return;
    }
    alter.whenAnswered.onComplete(response(false, new AlterPartitionResponse(alter.answer)));
    askController(leader);
  }

  /**
   * The leader's request is out of time, and the leader closes the connection: NetworkClient says
   * so, and NodeToControllerRequestThread.handleResponse and doWork send it again. False if they do
   * not.
   */
  static boolean sentAgain(Machine leader) {
    leader.alter.whenAnswered.onComplete(response(true, null));
    leader.process.sendAgain();
    return askController(leader);
  }

  private static ClientResponse response(boolean disconnected, AlterPartitionResponse answer) {
    RequestHeader header =
        new RequestHeader(ApiKeys.ALTER_PARTITION, ApiKeys.ALTER_PARTITION.latestVersion(), "", 0);
    return new ClientResponse(header, null, "", 0, 0, disconnected, null, null, answer);
  }

  /**
   * The model has dropped the answer. It comes nevertheless: before the leader asks again, or at
   * once.
   */
  static void drop(Machine leader) {
    Machine.Alter alter = leader.alter;
    leader.alter = new Machine.Alter();
    if (Steering.PROMPT) {
      tell(leader, alter);
    } else {
      leader.late = alter;
    }
  }

  /** An answer that the model has dropped comes now. */
  static void tellLate(Machine leader) {
    Machine.Alter alter = leader.late;
    leader.late = null;
    if (alter != null) {
      tell(leader, alter);
    }
  }
}
