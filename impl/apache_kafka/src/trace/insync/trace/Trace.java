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
  private static final Set<TopicPartition> LEADERSHIPS = ConcurrentHashMap.newKeySet();
  private static final Map<String, Long> ARRIVALS = new ConcurrentHashMap<>();
  private static FileOutputStream out;
  private static volatile long lineNumber;

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
    String demand;
    PartitionRegistration registration;
    LeaderAndIsr adoption;
    Partition partition;
    FetchParams fetches;
    FetchRequest.PartitionData from;
    ClientResponse reply;
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
    long since = lineNumber;
    Doing doing = DOING.get();
    switch (method) {
      case "handle" -> {
        Request request = (Request) given[0];
        ApiKeys api = request.header().apiKey();
        if (api == ApiKeys.PRODUCE || api == ApiKeys.FETCH) {
          doing.request = name(request);
          ARRIVALS.put(doing.request, since);
        }
      }
      case "sendResponse" -> {
        if (given.length == 2) {
          safely(() -> answers((Request) given[0], given[1]));
        }
      }
      case "makeLeader" -> {
        doing.registration = (PartitionRegistration) given[0];
        learnsName((Partition) self, (scala.Option<?>) given[3]);
      }
      case "makeFollower" -> learnsName((Partition) self, (scala.Option<?>) given[3]);
      case "appendRecordsToLeader" -> {
        doing.partition = (Partition) self;
        if (isTraced(doing.partition.topicPartition())) {
          doing.acks = String.valueOf(given[2]);
          StringJoiner rows = new StringJoiner(",", "[", "]");
          ((MemoryRecords) given[0]).batches().forEach(batch -> rows.add("[" + row(batch) + "]"));
          doing.demand = rows.toString();
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
      case "handleAlterPartitionUpdate" -> doing.adoption = (LeaderAndIsr) given[1];
      case "processPartitionData" -> doing.wrote = new StringJoiner(",", "[", "]");
      default -> {
        // what it did is told when it ends
      }
    }
    return since;
  }

  private static void learnsName(Partition partition, scala.Option<?> id) {
    if (id.isDefined()) {
      TOPICS.put((Uuid) id.get(), partition.topic());
    }
  }

  /** A method ends. */
  public static void ends(
      String method, long since, Object self, Object[] given, Object result, Throwable thrown) {
    if (out != null) {
      safely(() -> takesEnd(method, since, self, given, result, thrown));
    }
  }

  private static void takesEnd(
      String method, long since, Object self, Object[] given, Object result, Throwable thrown) {
    Doing doing = DOING.get();
    switch (method) {
      case "handle" -> doing.request = null;
      case "makeLeader" -> doing.registration = null;
      case "appendRecordsToLeader" -> doing.demand = null;
      case "fetchRecords" -> {
        if ((boolean) given[5]) {
          diverges(doing, since, (LogReadInfo) result);
        }
      }
      case "handleAlterPartitionUpdate" -> doing.adoption = null;
      case "sendRequest" -> doing.reply = (ClientResponse) result;
      case "processPartitionData" -> {
        if (thrown == null) {
          copies(doing, since, given);
        }
        doing.wrote = null;
      }
      default -> {
        if (thrown == null) {
          afterwards(method, since, self, given, result, doing);
        }
      }
    }
  }

  private static void afterwards(
      String method, long since, Object self, Object[] given, Object result, Doing doing) {
    switch (method) {
      case "createLog" -> opens((Partition) self, since, (boolean) given[1], (UnifiedLog) result);
      case "leaderReplicaIdOpt_$eq" -> leads((Partition) self, since, doing.registration);
      case "makeFollower" -> follows((Partition) self, since, (PartitionRegistration) given[0]);
      case "append" -> appended((LocalLog) self, since, (MemoryRecords) given[1], doing);
      case "markFlushed" -> flushed((LocalLog) self, since, (long) given[0]);
      case "updateFetchStateOrThrow" -> fetched((Replica) self, since, doing);
      case "updateHighWatermarkMetadata" -> watermark((UnifiedLog) self, since);
      case "prepareIsrShrink", "prepareIsrExpand" ->
          proposes((Partition) self, since, (PendingPartitionChange) result);
      case "partitionEpoch_$eq" -> adopts((Partition) self, since, doing.adoption);
      case "handleAlterPartitionError" -> refuses((Partition) self, since, (Errors) given[1]);
      case "truncate" ->
          truncated(
              (TopicPartition) given[0], since, ((OffsetTruncationState) given[1]).offset(), doing);
      case "truncateFullyAndStartAt" ->
          restarts((TopicPartition) given[0], since, (long) given[1]);
      default -> {
        // nothing to tell
      }
    }
  }

  // A replica's log

  private static void opens(Partition partition, long since, boolean future, UnifiedLog log) {
    TopicPartition tp = partition.topicPartition();
    if (future || !isTraced(tp)) {
      return;
    }
    LOGS.put(tp, log);
    StringJoiner rows = new StringJoiner(",", "[", "]");
    for (LogSegment segment : log.logSegments()) {
      segment.log().batches().forEach(batch -> rows.add(batchRow(batch)));
    }
    line("opened", since, tp, ",\"log\":" + rows + state(log));
  }

  private static void appended(LocalLog log, long since, MemoryRecords records, Doing doing) {
    TopicPartition tp = log.topicPartition();
    if (!isTraced(tp)) {
      return;
    }
    StringJoiner rows = doing.wrote != null ? doing.wrote : new StringJoiner(",", "[", "]");
    records.batches().forEach(batch -> rows.add(batchRow(batch)));
    if (doing.wrote == null && doing.demand != null) {
      String of = doing.request == null ? "" : ",\"request\":" + quote(doing.request);
      String demand = ",\"acks\":" + doing.acks + ",\"asked\":" + doing.demand;
      line("appends", since, tp, of + demand + ",\"wrote\":" + rows);
    }
  }

  private static void flushed(LocalLog log, long since, long upTo) {
    if (isTraced(log.topicPartition())) {
      line("flushed", since, log.topicPartition(), ",\"to\":" + upTo);
    }
  }

  private static void copies(Doing doing, long since, Object[] given) {
    TopicPartition tp = (TopicPartition) given[0];
    UnifiedLog log = LOGS.get(tp);
    if (log == null || !isTraced(tp)) {
      return;
    }
    FetchResponseData.PartitionData answer = (FetchResponseData.PartitionData) given[3];
    String demand = ",\"offset\":" + given[1] + ",\"leader_epoch\":" + given[2];
    String reply = demand + ",\"told\":" + answer.highWatermark() + ",\"wrote\":" + doing.wrote;
    line("copies", since, tp, message(doing) + reply + state(log));
  }

  private static void truncated(TopicPartition tp, long since, long to, Doing doing) {
    UnifiedLog log = LOGS.get(tp);
    if (log != null && isTraced(tp)) {
      line("truncates", since, tp, message(doing) + ",\"to\":" + to + state(log));
    }
  }

  private static void restarts(TopicPartition tp, long since, long at) {
    UnifiedLog log = LOGS.get(tp);
    if (log != null && isTraced(tp)) {
      line("restarts", since, tp, ",\"to\":" + at + state(log));
    }
  }

  private static String message(Doing doing) {
    if (doing.reply == null) {
      return "";
    }
    var header = doing.reply.requestHeader();
    String from = ",\"leader\":" + doing.reply.destination();
    return from + ",\"fetch\":" + quote(header.clientId() + "/" + header.correlationId());
  }

  private static String state(UnifiedLog log) {
    return ",\"log_end\":" + log.logEndOffset() + ",\"high_watermark\":" + log.highWatermark();
  }

  // What a leader knows

  private static void leads(Partition partition, long since, PartitionRegistration registration) {
    if (registration == null || !isTraced(partition.topicPartition())) {
      return;
    }
    LEADERSHIPS.add(partition.topicPartition());
    line("leads", since, partition.topicPartition(), registration(registration));
  }

  private static void follows(Partition partition, long since, PartitionRegistration registration) {
    TopicPartition tp = partition.topicPartition();
    if (isTraced(tp) && partition.getPartitionEpoch() == registration.partitionEpoch) {
      LEADERSHIPS.remove(tp);
      line("follows", since, tp, registration(registration));
    }
  }

  private static void watermark(UnifiedLog log, long since) {
    TopicPartition tp = log.topicPartition();
    if (LEADERSHIPS.contains(tp)) {
      line("watermark", since, tp, state(log));
    }
  }

  private static void fetched(Replica replica, long since, Doing doing) {
    if (doing.fetches == null || !isTraced(doing.partition.topicPartition())) {
      return;
    }
    String end = ",\"end\":" + replica.stateSnapshot().logEndOffset();
    line("fetched", since, doing.partition.topicPartition(), demand(doing) + end);
  }

  private static void diverges(Doing doing, long since, LogReadInfo read) {
    if (doing.fetches != null && read != null && read.divergingEpoch().isPresent()) {
      TopicPartition tp = doing.partition.topicPartition();
      if (isTraced(tp)) {
        line("diverges", since, tp, demand(doing) + diverging(read.divergingEpoch().get()));
      }
    }
    doing.fetches = null;
  }

  private static String demand(Doing doing) {
    FetchRequest.PartitionData from = doing.from;
    String by =
        ",\"follower\":"
            + doing.fetches.replicaId
            + ",\"broker_epoch\":"
            + doing.fetches.replicaEpoch;
    String at =
        ",\"offset\":" + from.fetchOffset + ",\"last_epoch\":" + from.lastFetchedEpoch.orElse(-1);
    String of = doing.request == null ? "" : ",\"request\":" + quote(doing.request);
    return by + at + ",\"leader_epoch\":" + from.currentLeaderEpoch.orElse(-1) + of;
  }

  private static void proposes(Partition partition, long since, PendingPartitionChange change) {
    if (!isTraced(partition.topicPartition())) {
      return;
    }
    LeaderAndIsr sent = change.sentLeaderAndIsr();
    StringJoiner members = new StringJoiner(",", "[", "]");
    for (BrokerState member : sent.isrWithBrokerEpoch()) {
      members.add("[" + member.brokerId() + "," + member.brokerEpoch() + "]");
    }
    line("proposes", since, partition.topicPartition(), ",\"isr\":" + members + epochs(sent));
  }

  private static void adopts(Partition partition, long since, LeaderAndIsr adoption) {
    if (adoption != null && isTraced(partition.topicPartition())) {
      String isr = ",\"isr\":" + new TreeSet<>(adoption.isr());
      line("adopts", since, partition.topicPartition(), isr + epochs(adoption));
    }
  }

  private static void refuses(Partition partition, long since, Errors error) {
    if (isTraced(partition.topicPartition())) {
      String back = ",\"rolled_back\":" + !partition.partitionState().isInflight();
      line("refused", since, partition.topicPartition(), ",\"error\":\"" + error + "\"" + back);
    }
  }

  private static String epochs(LeaderAndIsr of) {
    return ",\"leader_epoch\":" + of.leaderEpoch() + ",\"partition_epoch\":" + of.partitionEpoch();
  }

  private static String registration(PartitionRegistration of) {
    String who = ",\"leader\":" + of.leader + ",\"leader_epoch\":" + of.leaderEpoch;
    String in = ",\"partition_epoch\":" + of.partitionEpoch + ",\"isr\":" + inOrder(of.isr);
    String elr = ",\"elr\":" + inOrder(of.elr);
    String beside = elr + ",\"last_known_elr\":" + inOrder(of.lastKnownElr);
    return who + in + beside + ",\"replicas\":" + inOrder(of.replicas);
  }

  private static String inOrder(int[] ids) {
    return Arrays.toString(IntStream.of(ids).sorted().toArray());
  }

  // Answers

  private static void answers(Request request, Object response) {
    Long since = ARRIVALS.remove(name(request));
    if (since == null) {
      return;
    }
    String of = ",\"request\":" + quote(name(request));
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
              + quote(request.header().clientId() + "/" + request.header().correlationId());
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
    if (isTraced(tp)) {
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

  private static boolean isTraced(TopicPartition tp) {
    return !tp.topic().isEmpty() && !tp.topic().startsWith("__");
  }

  private static String row(RecordBatch b) {
    long count = b.lastOffset() - b.baseOffset() + 1;
    List<Object> of =
        List.of(count, b.checksum(), b.producerId(), b.producerEpoch(), b.baseSequence());
    String all = of.toString();
    return all.substring(1, all.length() - 1);
  }

  private static String batchRow(RecordBatch b) {
    return "[" + b.baseOffset() + "," + b.partitionLeaderEpoch() + "," + row(b) + "]";
  }

  private static String quote(String text) {
    return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
  }

  private static void line(String what, long since, TopicPartition tp, String more) {
    String thread = quote(Thread.currentThread().getName());
    String content = ",\"what\":\"" + what + "\",\"partition\":" + quote(tp.toString()) + more;
    synchronized (Trace.class) {
      long n = lineNumber + 1;
      String when = "{\"n\":" + n + ",\"since\":" + since + ",\"at\":" + System.nanoTime() / 1000;
      put(when + ",\"thread\":" + thread + content + "}\n");
      lineNumber = n;
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
      line("failed", lineNumber, new TopicPartition("?", 0), ",\"why\":" + quote(e.toString()));
    }
  }
}
