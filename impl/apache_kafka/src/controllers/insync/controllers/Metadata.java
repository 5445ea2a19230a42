package insync.controllers;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.AbortTransactionRecord;
import org.apache.kafka.common.metadata.BeginTransactionRecord;
import org.apache.kafka.common.metadata.EndTransactionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.controller.HeldQuorumController;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * The partition and its brokers, as Kafka's MetadataImage has them.
 *
 * @param topic the topic's id; null before it exists
 * @param registrations the broker epoch of each registration of each broker, in order
 */
record Metadata(
    Uuid topic,
    Integer leader,
    int leaderEpoch,
    int partitionEpoch,
    TreeSet<Integer> isr,
    TreeSet<Integer> elr,
    Integer lastLeader,
    TreeSet<Integer> fenced,
    Map<Integer, List<Long>> registrations) {
  /**
   * A log up to some batch, with what it makes of the metadata, and the logs that go on from it.
   */
  private static final class Log {
    private final MetadataImage image;
    private final Metadata metadata;
    private final Map<MemoryRecords, Log> longer = new HashMap<>();

    private Log(MetadataImage image, Map<Integer, List<Long>> registrations) {
      this.image = image;
      metadata = of(image, registrations);
    }

    private Log with(MemoryRecords batch) {
      Map<Integer, List<Long>> registrations = new TreeMap<>();
      metadata
          .registrations()
          .forEach((broker, epochs) -> registrations.put(broker, new ArrayList<>(epochs)));
      return new Log(after(image, batch, registrations), registrations);
    }
  }

  /** Most logs are looked at again and again. */
  private static final Log EMPTY = new Log(MetadataImage.EMPTY, Map.of());

  /** What each batch of a log makes of them. */
  static List<Metadata> afterEach(List<MemoryRecords> batches) {
    List<Metadata> all = new ArrayList<>();
    Log log = EMPTY;
    for (MemoryRecords batch : batches) {
      Log shorter = log;
      log = log.longer.computeIfAbsent(batch, shorter::with);
      all.add(log.metadata);
    }
    return all;
  }

  private static MetadataImage after(
      MetadataImage image, MemoryRecords records, Map<Integer, List<Long>> registrations) {
    MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
    long offset = -1;
    int epoch = 0;
    try (var batches = Reader.of(records)) {
      while (batches.hasNext()) {
        var batch = batches.next();
        for (ApiMessageAndVersion record : batch.records()) {
          replay(delta, record.message(), registrations);
        }
        offset = batch.lastOffset();
        epoch = batch.epoch();
      }
    }
    return delta.apply(new MetadataProvenance(offset, epoch, 0, true));
  }

  private static void replay(
      MetadataDelta delta, ApiMessage record, Map<Integer, List<Long>> registrations) {
    if (record instanceof BeginTransactionRecord
        || record instanceof EndTransactionRecord
        || record instanceof AbortTransactionRecord) {
      return;
    }
    if (record instanceof RegisterBrokerRecord broker) {
      registrations
          .computeIfAbsent(broker.brokerId(), ignored -> new ArrayList<>())
          .add(broker.brokerEpoch());
    }
    delta.replay(record);
  }

  private static Metadata of(MetadataImage image, Map<Integer, List<Long>> registrations) {
    var topic = image.topics().getTopic(HeldQuorumController.TOPIC);
    Map<Integer, BrokerRegistration> brokers = image.cluster().brokers();
    return topic == null
        ? of(null, null, brokers, registrations)
        : of(topic.id(), topic.partitions().get(0), brokers, registrations);
  }

  private static Metadata of(
      Uuid topic,
      PartitionRegistration partition,
      Map<Integer, BrokerRegistration> brokers,
      Map<Integer, List<Long>> registrations) {
    TreeSet<Integer> fenced = new TreeSet<>();
    brokers.forEach(
        (id, broker) -> {
          if (broker.fenced()) {
            fenced.add(id);
          }
        });
    if (partition == null) {
      TreeSet<Integer> none = new TreeSet<>();
      return new Metadata(topic, null, 0, 0, none, none, null, fenced, registrations);
    }
    return new Metadata(
        topic,
        partition.leader < 0 ? null : partition.leader,
        partition.leaderEpoch,
        partition.partitionEpoch,
        set(partition.isr),
        set(partition.elr),
        partition.lastKnownElr.length == 0 ? null : partition.lastKnownElr[0],
        fenced,
        registrations);
  }

  private static TreeSet<Integer> set(int[] brokers) {
    return new TreeSet<>(Arrays.stream(brokers).boxed().toList());
  }

  /** The same as this controller has it in its memory. */
  Metadata asReplayed(HeldQuorumController controller) {
    return of(topic, controller.partition(topic), controller.brokers(), registrations);
  }

  /** How often each broker has registered again. */
  Map<Integer, Integer> incarnations() {
    Map<Integer, Integer> all = new HashMap<>();
    registrations.forEach((broker, epochs) -> all.put(broker, epochs.size() - 1));
    return all;
  }
}
