package org.apache.kafka.raft;

import insync.objects.Fields;
import insync.raft.ClientMetrics;
import insync.raft.Disk;
import insync.raft.StillTime;
import java.net.InetSocketAddress;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.VoteRequestData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.utils.HeldTimer;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.serialization.RecordSerde;
import org.apache.kafka.snapshot.RawSnapshotWriter;
import org.apache.kafka.snapshot.SnapshotWriter;

/**
 * One KafkaRaftClient without a thread. It takes one input at a time and is then polled until it is
 * at rest. What it sends is held, and its timers fire when they are told to.
 *
 * @param <T> the records of its log
 */
public final class HeldClient<T> {
  /** Whether a fetch waits at the leader for news. */
  public static final boolean FETCHES_WAIT = Boolean.getBoolean("insync.waiting-fetches");

  /** Polls after which nothing is left to do at one time: one takes the input, others follow it. */
  private static final int POLLS = 3;

  private final HeldChannel channel = new HeldChannel();
  private final HeldQueue queue = new HeldQueue();
  private final ClientMetrics metrics = new ClientMetrics();
  private final HeldParts parts = new HeldParts();
  private final KafkaRaftClient<T> client;
  private final Map<Integer, WaitingFetch> waitingFetches = new HashMap<>();
  private BooleanSupplier listener = () -> false;

  /** A fetch that waits here: where its answer comes, and what ends when it has waited too long. */
  private record WaitingFetch(
      CompletableFuture<RaftResponse.Outbound> answer, CompletableFuture<?> expiration) {}

  /** The process of one of so many voters, 1 to {@code voters}, starts on this disk. */
  public HeldClient(int id, int voters, Disk disk, RecordSerde<T> serde) {
    this(id, disk, serde, addresses(voters), List.of());
  }

  private HeldClient(
      int id,
      Disk disk,
      RecordSerde<T> serde,
      Map<Integer, InetSocketAddress> voters,
      List<InetSocketAddress> servers) {
    client = ThisRelease.client(id, disk, servers, channel, queue, parts, serde);
    ThisRelease.initialize(client, voters, disk, metrics);
    metrics.keep();
    rest();
  }

  /** The same, with records that are words. */
  public static HeldClient<String> ofWords(int id, int voters, Disk disk) {
    return new HeldClient<>(id, voters, disk, HeldParts.WORDS);
  }

  /** The same for one of so many nodes, of which the log says who are voters (KIP-853). */
  public static HeldClient<String> ofNode(int id, int nodes, Disk disk) {
    List<InetSocketAddress> servers = List.copyOf(addresses(nodes).values());
    return new HeldClient<>(id, disk, HeldParts.WORDS, Map.of(), servers);
  }

  /** How records that are words are written. */
  public static RecordSerde<String> words() {
    return HeldParts.WORDS;
  }

  private static Map<Integer, InetSocketAddress> addresses(int nodes) {
    Map<Integer, InetSocketAddress> addresses = new TreeMap<>();
    for (int v = 1; v <= nodes; v++) {
      addresses.put(v, HeldParts.address(v));
    }
    return addresses;
  }

  /** Who listens to it does now what it has to do, and says whether that was anything. */
  public void listens(BooleanSupplier listener) {
    this.listener = listener;
  }

  /** Poll it until nothing is left to do at this time. */
  public void rest() {
    if (!quorum().isLeader()) {
      metrics.reset();
    }
    for (int i = 0; i < POLLS || !queue.isEmpty(); ) {
      client.poll();
      i = listener.getAsBoolean() ? 0 : i + 1;
    }
  }

  /** What Kafka's classes above it are given. */
  public RaftClient<T> client() {
    return client;
  }

  /** A request of another voter arrives; its answer, or null while it waits. */
  public ApiMessage answer(HeldRequest request, ApiMessage data) {
    return answer(request.number(), data);
  }

  /** The same for a request from elsewhere. */
  public ApiMessage answer(ApiMessage data) {
    return answer(channel.newCorrelationId(), data);
  }

  private ApiMessage answer(int number, ApiMessage data) {
    CompletableFuture<RaftResponse.Outbound> answer = ThisRelease.handle(client, number, data);
    rest();
    RaftResponse.Outbound outbound = answer.getNow(null);
    if (outbound == null && data instanceof FetchRequestData fetch) {
      WaitingFetch waiting = new WaitingFetch(answer, parts.expiration().last);
      waitingFetches.put(FetchRequest.replicaId(fetch), waiting);
    }
    return outbound == null ? null : outbound.data();
  }

  /** The answer to the fetch of this voter that waited here last; null while it waits. */
  public ApiMessage answerAfterWaiting(int sender) {
    RaftResponse.Outbound outbound = waitingFetches.get(sender).answer().getNow(null);
    return outbound == null ? null : outbound.data();
  }

  /** That fetch has waited too long. */
  public void timesOut(int sender) {
    waitingFetches.get(sender).expiration().completeExceptionally(new TimeoutException());
    rest();
  }

  /** The answer to its request to this voter comes back. */
  public void take(int from, ApiMessage answer) {
    channel.requests.remove(from).complete(answer);
    rest();
  }

  /** The same, and nothing else is done yet: who is elected by it has appended nothing. */
  public void takeAlone(int from, ApiMessage answer) {
    channel.requests.remove(from).complete(answer);
    client.poll();
    listener.getAsBoolean();
  }

  /** Fire a timer of the state that it is in; whether the state has one. */
  public boolean fire(String timer) {
    EpochState state = state();
    if (!Fields.has(state, timer)) {
      return false;
    }
    ((HeldTimer) Fields.get(state, timer)).fire();
    rest();
    return true;
  }

  /** A leader has heard of nobody for long, and says once more that it leads. */
  public void beginsAgain() {
    parts.time().moves(parts.quorumConfig().fetchTimeoutMs());
    fire("beginQuorumEpochTimer");
  }

  /** It is told to resign. */
  public void resign() {
    client.resign(quorum().epoch());
    rest();
  }

  /** A client of its log writes a record; NotLeaderException if it does not lead. */
  public void append(T record) {
    ThisRelease.append(client, quorum().epoch(), record);
    rest();
  }

  /** The requests whose answers it waits for, by whom they ask. It has forgotten all others. */
  public Map<Integer, HeldRequest> requests() {
    RequestManager manager = (RequestManager) Fields.get(client, "requestManager");
    Map<Integer, HeldRequest> all = new HashMap<>();
    channel.requests.forEach(
        (to, request) -> {
          if (manager.isResponseExpected(request.outbound().destination(), request.number())) {
            all.put(to, request);
          }
        });
    return all;
  }

  /** So much time goes by that it takes all requests for lost that are under way. */
  public void waits() {
    parts.time().moves(parts.quorumConfig().requestTimeoutMs());
    rest();
  }

  /** The quorum as it knows it. */
  public QuorumState quorum() {
    return client.quorum();
  }

  /** The state that it is in. */
  public EpochState state() {
    return (EpochState) Fields.get(client.quorum(), "state");
  }

  /** The epoch that it is in. */
  public int epoch() {
    return quorum().epoch();
  }

  /** For whom it voted in that epoch; null for nobody. */
  public Integer vote() {
    return state().election().optionalVotedKey().map(ReplicaKey::id).orElse(null);
  }

  /** Which directory that one had; null where it does not know. */
  public Uuid voteDirectory() {
    return state().election().optionalVotedKey().flatMap(ReplicaKey::directoryId).orElse(null);
  }

  /** Who leads that epoch; null if it does not know. */
  public Integer leader() {
    return quorum().leaderId().isPresent() ? quorum().leaderId().getAsInt() : null;
  }

  /** The offset below which it knows all to be committed; null if it knows none. */
  public Integer highWatermark() {
    return quorum().highWatermark().map(o -> (int) o.offset()).orElse(null);
  }

  /** The same as its log knows it, which a leader that has just resigned has forgotten. */
  public long logWatermark() {
    return log().highWatermark().offset();
  }

  private org.apache.kafka.raft.RaftLog log() {
    return (org.apache.kafka.raft.RaftLog) Fields.get(client, "log");
  }

  /** The voter sets that it has read, by their offsets; one before the log's first is at -1. */
  @SuppressWarnings("unchecked")
  public NavigableMap<Long, VoterSet> voterSets() {
    Object all = Fields.get(Fields.get(client, "partitionState"), "voterSetHistory");
    return (NavigableMap<Long, VoterSet>) Fields.get(Fields.get(all, "votersHistory"), "history");
  }

  /** Whether it is a voter as far as it knows. */
  public boolean isVoter() {
    return quorum().isVoter();
  }

  /** The snapshot that a follower fetches; null for none. */
  public OffsetAndEpoch fetchingSnapshot() {
    return state() instanceof FollowerState follower
        ? follower.fetchingSnapshot().map(RawSnapshotWriter::snapshotId).orElse(null)
        : null;
  }

  /** Take a snapshot, and clean the log before it; whether there was none so late. */
  public boolean snapshots(OffsetAndEpoch id) {
    Optional<SnapshotWriter<T>> writer = client.createSnapshot(id, 0);
    writer.ifPresent(SnapshotWriter::freeze);
    return writer.isPresent() && log().deleteBeforeSnapshot(id);
  }

  /** Whether a vote is asked for beforehand (KIP-996). */
  public static boolean isPreVote(VoteRequestData.PartitionData vote) {
    return ThisRelease.isPreVote(vote);
  }

  /** Whether this release notes that a follower has fetched from its leader, as since KIP-996. */
  public static boolean notesFetches() {
    return ThisRelease.HAS_PRE_VOTES;
  }

  /** Whether it has fetched from the leader that it follows. */
  public boolean hasFetched() {
    return notesFetches()
        && state() instanceof FollowerState follower
        && Fields.isTrue(follower, "hasFetchedFromLeader");
  }

  /**
   * Where a leader has seen another node fetch, which directory that had, and where it has to fetch
   * to have caught up once; null if it has.
   */
  public record Fetched(long end, Uuid directory, Long target) {}

  /** The same of each other node, and of its latest directory, where it is not that of a voter. */
  public Map<Integer, Fetched> fetched(int own) {
    Map<Integer, Fetched> all = new HashMap<>();
    if (state() instanceof LeaderState<?> leader) {
      leader.observerStates(StillTime.NOW).values().forEach(state -> note(all, state));
      leader.voterStates().values().forEach(state -> all.remove(state.replicaKey().id()));
      leader.voterStates().values().forEach(state -> note(all, state));
    }
    all.remove(own);
    return all;
  }

  private static void note(Map<Integer, Fetched> all, LeaderState.ReplicaState state) {
    Uuid directory = state.replicaKey().directoryId().orElse(Uuid.ZERO_UUID);
    Long target =
        state.lastCaughtUpTimestamp() > 0
            ? null
            : Fields.number(state, "lastFetchLeaderLogEndOffset");
    state
        .endOffset()
        .ifPresent(
            end ->
                all.merge(
                    state.replicaKey().id(),
                    new Fetched(end.offset(), directory, target),
                    (a, b) -> a.directory().compareTo(b.directory()) < 0 ? b : a));
  }

  /** Who has granted its vote, or rejected it, while it is a nominee. */
  public Collection<Integer> votes(boolean granting) {
    return ThisRelease.votes(state(), granting);
  }
}
