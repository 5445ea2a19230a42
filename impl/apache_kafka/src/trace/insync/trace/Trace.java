package insync.trace;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import kafka.cluster.Partition;
import kafka.server.OffsetTruncationState;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.network.Request;
import org.apache.kafka.server.partition.PendingPartitionChange;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.storage.internals.log.LocalLog;
import org.apache.kafka.storage.internals.log.LogReadInfo;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/**
 * Writes what one broker does with its partitions: a line of JSON for each step, in the order in
 * which the steps were taken, as far as Kafka's own locks give one (docs/kafka-trace.md).
 *
 * <p>A line is given to the system before the method that it tells of returns, so SIGKILL loses
 * none but the last. Where no lock orders it with the lines around it, the step was taken after the
 * line {@code since} and before its own.
 */
public final class Trace {
  private static final String FOLDER = System.getProperty("insync.trace.dir");
  private static final ThreadLocal<Doing> DOING = ThreadLocal.withInitial(Doing::new);
  private static final Map<TopicPartition, UnifiedLog> LOGS = new ConcurrentHashMap<>();
  private static final Map<Uuid, String> TOPICS = new ConcurrentHashMap<>();
  private static final Set<TopicPartition> LED = ConcurrentHashMap.newKeySet();
  private static final Map<String, Long> RECEIVED = new ConcurrentHashMap<>();
  private static FileOutputStream out;
  private static volatile long written;

  static {
    if (FOLDER != null) {
      open(System.getProperty("insync.trace.node", "0"));
    }
  }

  private Trace() {}

  /** What a thread is about. */
  private static final class Doing {
    String request;
    String acks;
    String asked;
    PartitionRegistration told;
    LeaderAndIsr adopted;
    Partition partition;
    FetchParams fetches;
    FetchRequest.PartitionData from;
    ClientResponse heard;
    StringJoiner wrote;
  }

  private static void open(String node) {
    File folder = new File(FOLDER);
    folder.mkdirs();
    String[] there =
        folder.list((where, name) -> name.startsWith(node + ".") && name.endsWith(".jsonl"));
    int life = 1 + (there == null ? 0 : there.length);
    try {
      out = new FileOutputStream(new File(folder, node + "." + life + ".jsonl"), true);
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    String head = "{\"format\":\"insync/kafka-trace/1\",\"node\":\"%s\",\"life\":%d,\"at\":%d}\n";
    put(String.format(head, node, life, System.nanoTime() / 1000));
  }

  /** A method is entered; how many lines there were by then. */
  public static long begins(String method, Object self, Object[] given) {
    if (out == null) {
      return 0;
    }
    long since = written;
    Doing doing = DOING.get();
    switch (method) {
      case "handle" -> {
        Request request = (Request) given[0];
        ApiKeys api = request.header().apiKey();
        if (api == ApiKeys.PRODUCE || api == ApiKeys.FETCH) {
          doing.request = name(request);
          RECEIVED.put(doing.request, since);
        }
      }
      case "sendResponse" -> {
        if (given.length == 2) {
          safely(() -> answers((Request) given[0], given[1]));
        }
      }
      case "makeLeader" -> {
        doing.told = (PartitionRegistration) given[0];
        named((Partition) self, (scala.Option<?>) given[3]);
      }
      case "makeFollower" -> named((Partition) self, (scala.Option<?>) given[3]);
      case "appendRecordsToLeader" -> {
        doing.partition = (Partition) self;
        if (told(doing.partition.topicPartition())) {
          doing.acks = String.valueOf(given[2]);
          StringJoiner rows = new StringJoiner(",", "[", "]");
          ((MemoryRecords) given[0]).batches().forEach(batch -> rows.add("[" + row(batch) + "]"));
          doing.asked = rows.toString();
        }
      }
      case "fetchRecords" -> {
        FetchParams fetches = (FetchParams) given[0];
        if (fetches.isFromFollower() && (boolean) given[5]) {
          doing.partition = (Partition) self;
          doing.fetches = fetches;
          doing.from = (FetchRequest.PartitionData) given[1];
        }
      }
      case "handleAlterPartitionUpdate" -> doing.adopted = (LeaderAndIsr) given[1];
      case "processPartitionData" -> doing.wrote = new StringJoiner(",", "[", "]");
      default -> {
        // what it did is told when it ends
      }
    }
    return since;
  }

  private static void named(Partition partition, scala.Option<?> id) {
    if (id.isDefined()) {
      TOPICS.put((Uuid) id.get(), partition.topic());
    }
  }

  /** A method ends. */
  public static void ends(
      String method, long since, Object self, Object[] given, Object result, Throwable thrown) {
    if (out != null) {
      safely(() -> ended(method, since, self, given, result, thrown));
    }
  }

  private static void ended(
      String method, long since, Object self, Object[] given, Object result, Throwable thrown) {
    Doing doing = DOING.get();
    switch (method) {
      case "handle" -> doing.request = null;
      case "makeLeader" -> doing.told = null;
      case "appendRecordsToLeader" -> doing.asked = null;
      case "fetchRecords" -> {
        if ((boolean) given[5]) {
          diverges(doing, since, (LogReadInfo) result);
        }
      }
      case "handleAlterPartitionUpdate" -> doing.adopted = null;
      case "sendRequest" -> doing.heard = (ClientResponse) result;
      case "processPartitionData" -> {
        if (thrown == null) {
          copied(doing, since, given);
        }
        doing.wrote = null;
      }
      default -> {
        if (thrown == null) {
          done(method, since, self, given, result, doing);
        }
      }
    }
  }

  private static void done(
      String method, long since, Object self, Object[] given, Object result, Doing doing) {
    switch (method) {
      case "createLog" -> opened((Partition) self, since, (boolean) given[1], (UnifiedLog) result);
      case "leaderReplicaIdOpt_$eq" -> leads((Partition) self, since, doing.told);
      case "makeFollower" -> follows((Partition) self, since, (PartitionRegistration) given[0]);
      case "append" -> appended((LocalLog) self, since, (MemoryRecords) given[1], doing);
      case "markFlushed" -> flushed((LocalLog) self, since, (long) given[0]);
      case "updateFetchStateOrThrow" -> fetched((Replica) self, since, doing);
      case "updateHighWatermarkMetadata" -> watermark((UnifiedLog) self, since);
      case "prepareIsrShrink", "prepareIsrExpand" ->
          proposes((Partition) self, since, (PendingPartitionChange) result);
      case "partitionEpoch_$eq" -> adopts((Partition) self, since, doing.adopted);
      case "handleAlterPartitionError" -> refused((Partition) self, since, (Errors) given[1]);
      case "truncate" ->
          truncated(
              (TopicPartition) given[0], since, ((OffsetTruncationState) given[1]).offset(), doing);
      case "truncateFullyAndStartAt" ->
          restarted((TopicPartition) given[0], since, (long) given[1]);
      default -> {
        // nothing to tell
      }
    }
  }

  // A replica's log

  private static void opened(Partition partition, long since, boolean future, UnifiedLog log) {
    TopicPartition tp = partition.topicPartition();
    if (future || !told(tp)) {
      return;
    }
    LOGS.put(tp, log);
    StringJoiner rows = new StringJoiner(",", "[", "]");
    for (LogSegment segment : log.logSegments()) {
      segment.log().batches().forEach(batch -> rows.add(placed(batch)));
    }
    line("opened", since, tp, ",\"log\":" + rows + state(log));
  }

  private static void appended(LocalLog log, long since, MemoryRecords records, Doing doing) {
    TopicPartition tp = log.topicPartition();
    if (!told(tp)) {
      return;
    }
    StringJoiner rows = doing.wrote != null ? doing.wrote : new StringJoiner(",", "[", "]");
    records.batches().forEach(batch -> rows.add(placed(batch)));
    if (doing.wrote == null && doing.asked != null) {
      String of = doing.request == null ? "" : ",\"request\":" + quoted(doing.request);
      String asked = ",\"acks\":" + doing.acks + ",\"asked\":" + doing.asked;
      line("appends", since, tp, of + asked + ",\"wrote\":" + rows);
    }
  }

  private static void flushed(LocalLog log, long since, long upTo) {
    if (told(log.topicPartition())) {
      line("flushed", since, log.topicPartition(), ",\"to\":" + upTo);
    }
  }

  private static void copied(Doing doing, long since, Object[] given) {
    TopicPartition tp = (TopicPartition) given[0];
    UnifiedLog log = LOGS.get(tp);
    if (log == null || !told(tp)) {
      return;
    }
    FetchResponseData.PartitionData answer = (FetchResponseData.PartitionData) given[3];
    String asked = ",\"offset\":" + given[1] + ",\"leader_epoch\":" + given[2];
    String heard = asked + ",\"told\":" + answer.highWatermark() + ",\"wrote\":" + doing.wrote;
    line("copies", since, tp, message(doing) + heard + state(log));
  }

  private static void truncated(TopicPartition tp, long since, long to, Doing doing) {
    UnifiedLog log = LOGS.get(tp);
    if (log != null && told(tp)) {
      line("truncates", since, tp, message(doing) + ",\"to\":" + to + state(log));
    }
  }

  private static void restarted(TopicPartition tp, long since, long at) {
    UnifiedLog log = LOGS.get(tp);
    if (log != null && told(tp)) {
      line("restarts", since, tp, ",\"to\":" + at + state(log));
    }
  }

  private static String message(Doing doing) {
    if (doing.heard == null) {
      return "";
    }
    var header = doing.heard.requestHeader();
    String from = ",\"leader\":" + doing.heard.destination();
    return from + ",\"fetch\":" + quoted(header.clientId() + "/" + header.correlationId());
  }

  private static String state(UnifiedLog log) {
    return ",\"log_end\":" + log.logEndOffset() + ",\"high_watermark\":" + log.highWatermark();
  }

  // What a leader knows

  private static void leads(Partition partition, long since, PartitionRegistration told) {
    if (told == null || !told(partition.topicPartition())) {
      return;
    }
    LED.add(partition.topicPartition());
    line("leads", since, partition.topicPartition(), registration(told));
  }

  private static void follows(Partition partition, long since, PartitionRegistration told) {
    TopicPartition tp = partition.topicPartition();
    if (told(tp) && partition.getPartitionEpoch() == told.partitionEpoch) {
      LED.remove(tp);
      line("follows", since, tp, registration(told));
    }
  }

  private static void watermark(UnifiedLog log, long since) {
    TopicPartition tp = log.topicPartition();
    if (LED.contains(tp)) {
      line("watermark", since, tp, state(log));
    }
  }

  private static void fetched(Replica replica, long since, Doing doing) {
    if (doing.fetches == null || !told(doing.partition.topicPartition())) {
      return;
    }
    String end = ",\"end\":" + replica.stateSnapshot().logEndOffset();
    line("fetched", since, doing.partition.topicPartition(), asked(doing) + end);
  }

  private static void diverges(Doing doing, long since, LogReadInfo read) {
    if (doing.fetches != null && read != null && read.divergingEpoch().isPresent()) {
      TopicPartition tp = doing.partition.topicPartition();
      if (told(tp)) {
        line("diverges", since, tp, asked(doing) + diverging(read.divergingEpoch().get()));
      }
    }
    doing.fetches = null;
  }

  private static String asked(Doing doing) {
    FetchRequest.PartitionData from = doing.from;
    String by =
        ",\"follower\":"
            + doing.fetches.replicaId
            + ",\"broker_epoch\":"
            + doing.fetches.replicaEpoch;
    String at =
        ",\"offset\":" + from.fetchOffset + ",\"last_epoch\":" + from.lastFetchedEpoch.orElse(-1);
    String of = doing.request == null ? "" : ",\"request\":" + quoted(doing.request);
    return by + at + ",\"leader_epoch\":" + from.currentLeaderEpoch.orElse(-1) + of;
  }

  private static void proposes(Partition partition, long since, PendingPartitionChange change) {
    if (!told(partition.topicPartition())) {
      return;
    }
    LeaderAndIsr sent = change.sentLeaderAndIsr();
    StringJoiner members = new StringJoiner(",", "[", "]");
    for (BrokerState member : sent.isrWithBrokerEpoch()) {
      members.add("[" + member.brokerId() + "," + member.brokerEpoch() + "]");
    }
    line("proposes", since, partition.topicPartition(), ",\"isr\":" + members + epochs(sent));
  }

  private static void adopts(Partition partition, long since, LeaderAndIsr adopted) {
    if (adopted != null && told(partition.topicPartition())) {
      String isr = ",\"isr\":" + new TreeSet<>(adopted.isr());
      line("adopts", since, partition.topicPartition(), isr + epochs(adopted));
    }
  }

  private static void refused(Partition partition, long since, Errors error) {
    if (told(partition.topicPartition())) {
      String back = ",\"rolled_back\":" + !partition.partitionState().isInflight();
      line("refused", since, partition.topicPartition(), ",\"error\":\"" + error + "\"" + back);
    }
  }

  private static String epochs(LeaderAndIsr of) {
    return ",\"leader_epoch\":" + of.leaderEpoch() + ",\"partition_epoch\":" + of.partitionEpoch();
  }

  private static String registration(PartitionRegistration of) {
    String who = ",\"leader\":" + of.leader + ",\"leader_epoch\":" + of.leaderEpoch;
    String in = ",\"partition_epoch\":" + of.partitionEpoch + ",\"isr\":" + sorted(of.isr);
    String beside = ",\"elr\":" + sorted(of.elr) + ",\"last_known_elr\":" + sorted(of.lastKnownElr);
    return who + in + beside + ",\"replicas\":" + sorted(of.replicas);
  }

  private static String sorted(int[] ids) {
    return Arrays.toString(IntStream.of(ids).sorted().toArray());
  }

  // Answers

  private static void answers(Request request, Object response) {
    Long since = RECEIVED.remove(name(request));
    if (since == null) {
      return;
    }
    String of = ",\"request\":" + quoted(name(request));
    if (response instanceof ProduceResponse produced) {
      for (var topic : produced.data().responses()) {
        for (var p : topic.partitionResponses()) {
          TopicPartition tp = new TopicPartition(topic(topic.name(), topic.topicId()), p.index());
          String how = error(p.errorCode()) + ",\"offset\":" + p.baseOffset();
          answer("acknowledges", since, tp, of + how);
        }
      }
    } else if (response instanceof FetchResponse fetched) {
      int follower = request.body(FetchRequest.class).replicaId();
      String to =
          of
              + ",\"fetch\":"
              + quoted(request.header().clientId() + "/" + request.header().correlationId());
      for (var topic : fetched.data().responses()) {
        for (var p : topic.partitions()) {
          TopicPartition tp =
              new TopicPartition(topic(topic.topic(), topic.topicId()), p.partitionIndex());
          String what = error(p.errorCode()) + ",\"high_watermark\":" + p.highWatermark();
          answer("answers", since, tp, to + ",\"follower\":" + follower + what);
        }
      }
    }
  }

  private static void answer(String what, long since, TopicPartition tp, String more) {
    if (told(tp)) {
      line(what, since, tp, more);
    }
  }

  private static String topic(String name, Uuid id) {
    return name != null && !name.isEmpty() ? name : TOPICS.getOrDefault(id, "");
  }

  private static String error(short code) {
    return ",\"error\":\"" + Errors.forCode(code) + "\"";
  }

  private static String diverging(FetchResponseData.EpochEndOffset at) {
    return ",\"diverging\":{\"epoch\":" + at.epoch() + ",\"end\":" + at.endOffset() + "}";
  }

  private static String name(Request request) {
    return request.context().connectionId + "/" + request.header().correlationId();
  }

  // Lines

  private static boolean told(TopicPartition tp) {
    return !tp.topic().isEmpty() && !tp.topic().startsWith("__");
  }

  private static String row(RecordBatch b) {
    long count = b.lastOffset() - b.baseOffset() + 1;
    List<Object> of =
        List.of(count, b.checksum(), b.producerId(), b.producerEpoch(), b.baseSequence());
    String all = of.toString();
    return all.substring(1, all.length() - 1);
  }

  private static String placed(RecordBatch b) {
    return "[" + b.baseOffset() + "," + b.partitionLeaderEpoch() + "," + row(b) + "]";
  }

  private static String quoted(String text) {
    return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
  }

  private static void line(String what, long since, TopicPartition tp, String more) {
    String thread = quoted(Thread.currentThread().getName());
    String told = ",\"what\":\"" + what + "\",\"partition\":" + quoted(tp.toString()) + more;
    synchronized (Trace.class) {
      long n = written + 1;
      String when = "{\"n\":" + n + ",\"since\":" + since + ",\"at\":" + System.nanoTime() / 1000;
      put(when + ",\"thread\":" + thread + told + "}\n");
      written = n;
    }
  }

  private static void put(String line) {
    try {
      out.write(line.getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  /** What goes wrong here is a line, never Kafka's affair. */
  private static void safely(Runnable tells) {
    try {
      tells.run();
    } catch (RuntimeException | LinkageError e) {
      line("failed", written, new TopicPartition("?", 0), ",\"why\":" + quoted(e.toString()));
    }
  }
}
