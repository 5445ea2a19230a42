package insync.kafka;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.server.storage.log.FetchPartitionData;

/**
 * One replica of the partition: the adapter's broker, with nothing done for the environment, as
 * somebody who tells a story moves it. The package is the adapter's, because its broker is visible
 * only there.
 */
public final class Replica {
  private static final int SOCKET_TIMEOUT_MS = 30_000; // controller.socket.timeout.ms

  /** Kafka's id of the broker: 0 for r1. */
  public final int id;

  private final HeldController controller;
  private final Machine machine;
  private final Broker broker;
  private final List<Machine.Alter> copies = new ArrayList<>();

  /** A broker that has read all metadata so far. */
  public Replica(int id, HeldController controller) throws Exception {
    this.id = id;
    this.controller = controller;
    machine = new Machine(id, controller.clock);
    broker = new Broker(id, controller.epoch(id), controller.clock, Disk.NEW, machine.directory());
    machine.process = broker;
    learn();
  }

  /**
   * Reads all metadata that there is by now, as one delta.
   *
   * @return how many changes of the partition were in it
   */
  public long learn() {
    long changes =
        controller.log().stream()
            .skip(broker.metadataPosition())
            .filter(record -> record instanceof PartitionChangeRecord)
            .count();
    broker.learn(controller);
    collect();
    return changes;
  }

  /** Reads all metadata that there is by now as a snapshot, also what it has read. */
  public void learnSnapshot() {
    broker.learnSnapshot(controller, controller.log().size());
    collect();
  }

  /** Whether its broker has the partition. */
  public boolean isThere() {
    return broker.partition() != null;
  }

  /** A producer's record of one letter, with acks=all. */
  public void produce(char value) {
    broker.produce(value, (short) -1);
  }

  /** What the last producer was told; null while its request is parked. */
  public Errors answer() {
    return broker.replies.isEmpty() ? null : broker.replies.get(broker.replies.size() - 1).error();
  }

  /**
   * What ReplicaManager does every half of replica.lag.time.max.ms: who lags is to leave the ISR.
   */
  public void shrink() {
    broker.shrink();
    collect();
  }

  /** One fetch and its answer, as the fetcher thread handles them. Says what came of it. */
  public String fetchFrom(Replica leader) {
    Broker.Ask ask = ask(leader);
    FetchPartitionData got = leader.handle(ask);
    long before = logEnd();
    broker.answer(ask, Messages.response(got, topic()));
    if (got.divergingEpoch.isPresent()) {
      return "truncates to " + logEnd() + ", where its log parts from " + leader.name() + "'s";
    }
    return logEnd() == before ? "has all there is" : "appends up to offset " + logEnd();
  }

  /** A fetch that reaches the leader and whose answer is still on its way. */
  public void askAt(Replica leader) {
    leader.handle(ask(leader));
  }

  private Broker.Ask ask(Replica leader) {
    Broker.Ask ask = broker.ask();
    if (ask == null || ask.to() != leader.id) {
      throw new IllegalStateException(name() + " does not ask " + leader.name());
    }
    return ask;
  }

  private FetchPartitionData handle(Broker.Ask ask) {
    Map<Uuid, String> names = Map.of(topic(), Broker.PARTITION.topic());
    FetchPartitionData got = broker.fetch(ask.request().build(), names, false);
    if (got.error != Errors.NONE) {
      throw got.error.exception();
    }
    collect();
    return got;
  }

  private Uuid topic() {
    return controller.topic();
  }

  // AlterPartition

  /** What it has put on its way to the controller is a copy more. */
  private void collect() {
    if (Messages.askController(machine)) {
      copies.add(machine.alter);
    }
  }

  /** All copies of requests that it has sent to the controller so far. */
  public List<AlterPartitionRequestData> copies() {
    return copies.stream().map(copy -> copy.request).toList();
  }

  /**
   * controller.socket.timeout.ms goes by without an answer: NetworkClient closes the connection,
   * and the request is sent again.
   */
  public void timeOut() {
    controller.clock.sleep(SOCKET_TIMEOUT_MS);
    Machine.Alter last = machine.alter;
    if (Messages.sentAgain(machine)) {
      copies.add(machine.alter);
    }
    last.whenAnswered = null;
  }

  /**
   * A copy reaches the controller, and the answer the broker, if its connection is still open; says
   * what the controller answers.
   */
  public String deliver(int number) {
    Machine.Alter copy = copies.get(number);
    copy.answer = controller.alter(copy.request);
    Machine.Alter before = machine.alter;
    Messages.tell(machine, copy);
    if (machine.alter != before) {
      copies.add(machine.alter);
    }
    AlterPartitionResponseData.PartitionData partition =
        copy.answer.topics().get(0).partitions().get(0);
    Errors error = Errors.forCode(partition.errorCode());
    return error == Errors.NONE ? "accepted, ISR " + names(partition.isr()) : "refused, " + error;
  }

  // What there is

  /** The leader's view of a follower's log end; -1 if unknown. */
  public long positionOf(Replica follower) {
    return broker.replica(follower.id).stateSnapshot().logEndOffset();
  }

  /** The letters of all records in the log. */
  public String values() {
    return broker.rows().stream()
        .map(row -> Character.toString(row.name()))
        .collect(Collectors.joining());
  }

  /** Its log's end. */
  public long logEnd() {
    return broker.log().logEndOffset();
  }

  /** Its high watermark. */
  public long highWatermark() {
    return broker.watermark();
  }

  /** min.insync.replicas, as its log has it. */
  public int minimum() {
    return broker.log().config().minInSyncReplicas;
  }

  /** The members of the ISR that it waits for, the proposed ones included. */
  public String maximalIsr() {
    return names(broker.maximalIsr());
  }

  private String name() {
    return Steps.name(id);
  }

  /** Brokers by the names that they have in a story. */
  public static String names(Iterable<Integer> ids) {
    return "{" + String.join(", ", Steps.names(ids)) + "}";
  }

  @Override
  public String toString() {
    if (!isThere()) {
      return name() + "  has no replica";
    }
    String leader = broker.leader() < 0 ? "nobody" : Steps.name(broker.leader());
    String role = broker.leads() ? "leads, waits for " + maximalIsr() : "follows " + leader;
    return String.format(
        "%s  epoch %d, log end %d, high watermark %d, %s",
        name(), broker.leaderEpoch(), logEnd(), highWatermark(), role);
  }
}
