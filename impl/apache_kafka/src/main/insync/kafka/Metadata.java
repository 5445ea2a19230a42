package insync.kafka;

import insync.objects.Fields;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import kafka.server.TopicConfigHandler;
import kafka.server.metadata.BrokerMetadataPublisher;
import kafka.server.metadata.DynamicConfigPublisher;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.publisher.AclPublisher;
import org.apache.kafka.metadata.publisher.DelegationTokenPublisher;
import org.apache.kafka.metadata.publisher.DynamicClientQuotaPublisher;
import org.apache.kafka.metadata.publisher.DynamicTopicClusterQuotaPublisher;
import org.apache.kafka.metadata.publisher.ScramPublisher;
import org.apache.kafka.queue.KafkaEventQueue;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.internals.MemoryBatchReader;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.ConfigType;
import org.apache.kafka.server.fault.FaultHandler;
import org.apache.kafka.snapshot.SnapshotReader;
import scala.jdk.javaapi.CollectionConverters;

/**
 * How metadata reaches a broker: MetadataLoader.handleCommit takes batches of the metadata log and
 * hands BrokerMetadataPublisher.onMetadataUpdate a delta and an image, one for each reader of
 * batches.
 *
 * <p>The loader's KafkaEventQueue has ended its thread. Its own loop goes on in the adapter's
 * thread, until it has no event left.
 */
final class Metadata {
  private static final Method HANDLE_EVENTS =
      Fields.method(
          Fields.type("org.apache.kafka.queue.KafkaEventQueue$EventHandler"), "handleEvents");

  /** The first fault that a part of Kafka handed to its fault handler, which would go on. */
  private static final class Faults implements FaultHandler {
    private RuntimeException first;

    @Override
    public RuntimeException handleFault(String message, Throwable cause) {
      RuntimeException fault = new IllegalStateException(message, cause);
      first = first == null ? fault : first;
      return fault;
    }

    void raise() {
      RuntimeException fault = first;
      first = null;
      if (fault != null) {
        throw fault;
      }
    }
  }

  private final Clock clock;
  private final Parts parts;
  private final Faults faults = new Faults();
  private final MetadataLoader loader;
  private final KafkaEventQueue queue;
  private final BrokerMetadataPublisher publisher;
  private boolean isInstalled;
  private MetadataImage image = MetadataImage.EMPTY;
  private int position;
  private long committed;

  Metadata(Broker broker, Parts parts) throws Exception {
    clock = broker.clock;
    this.parts = parts;
    loader =
        new MetadataLoader.Builder()
            .setNodeId(broker.id)
            .setTime(clock)
            .setFaultHandler(faults)
            .setHighWaterMarkAccessor(() -> OptionalLong.of(committed))
            .build();
    queue = (KafkaEventQueue) Fields.get(loader, "eventQueue");
    queue.close();
    publisher = publisher(broker.id);
  }

  private BrokerMetadataPublisher publisher(int broker) {
    Object[] given = {broker, parts.config, faults, "broker", parts.quotas};
    Object handlers =
        scala.collection.immutable.Map$.MODULE$.from(
            CollectionConverters.asScala(
                Map.of(
                    ConfigType.TOPIC,
                    new TopicConfigHandler(parts.manager, parts.config, parts.quotas))));
    BrokerMetadataPublisher made =
        Wiring.make(
            BrokerMetadataPublisher.class,
            parts.config,
            parts.cache,
            parts.logs.manager,
            parts.manager,
            faults,
            Wiring.make(DynamicConfigPublisher.class, parts.config, faults, handlers, "broker"),
            Wiring.make(DynamicClientQuotaPublisher.class, given),
            Wiring.make(DynamicTopicClusterQuotaPublisher.class, given),
            Wiring.make(ScramPublisher.class, given),
            Wiring.make(DelegationTokenPublisher.class, given),
            Wiring.make(AclPublisher.class, given));
    made._firstPublish_$eq(false); // its managers start when the process does: Broker.load
    return made;
  }

  /** How many records it has. */
  int position() {
    return position;
  }

  /** What is committed by now, up to so many records. */
  void learn(HeldController controller, int end) {
    committed = end;
    if (committed <= position) {
      return;
    }
    List<Batch<ApiMessageAndVersion>> batches = next(controller, end);
    switch (Steering.METADATA) {
      case COALESCED -> read(batches);
      case BATCHES -> {
        if (isInstalled) {
          batches.forEach(batch -> read(List.of(batch)));
        } else {
          read(batches); // a broker that starts is told nothing before it has caught up
        }
      }
      case SNAPSHOT -> {
        if (isInstalled) {
          load(batches);
        } else {
          read(batches);
        }
      }
      case DIRECT -> apply(batches);
    }
    faults.raise();
  }

  /**
   * What is committed up to so many records comes as a snapshot, with all that it has already:
   * MetadataLoader.handleLoadSnapshot, of what MetadataImage.write writes.
   */
  void learnSnapshot(HeldController controller, int end) {
    committed = Math.max(position, end);
    load(next(controller, end));
    faults.raise();
  }

  /** What it has already and these batches, as a snapshot. */
  private void load(List<Batch<ApiMessageAndVersion>> batches) {
    MetadataImage known = parts.cache.currentImage();
    MetadataDelta delta = new MetadataDelta.Builder().setImage(known).build();
    batches.forEach(batch -> batch.records().forEach(record -> delta.replay(record.message())));
    MetadataImage all = delta.apply(new MetadataProvenance(position, 1, clock.now, true));
    RecordListWriter writer = new RecordListWriter();
    all.write(writer, new ImageWriterOptions.Builder(all).build());
    Batch<ApiMessageAndVersion> batch = Batch.data(position, 1, clock.now, 0, writer.records());
    handle(() -> loader.handleLoadSnapshot(snapshot(List.of(batch).iterator())));
  }

  /** A snapshot of all so far with these batches; the type of its id is another in old releases. */
  @SuppressWarnings("unchecked")
  private SnapshotReader<ApiMessageAndVersion> snapshot(
      Iterator<Batch<ApiMessageAndVersion>> batches) {
    return (SnapshotReader<ApiMessageAndVersion>)
        Proxy.newProxyInstance(
            Metadata.class.getClassLoader(),
            new Class<?>[] {SnapshotReader.class},
            (self, method, none) ->
                switch (method.getName()) {
                  case "hasNext" -> batches.hasNext();
                  case "next" -> batches.next();
                  case "snapshotId" ->
                      method
                          .getReturnType()
                          .getConstructor(long.class, int.class)
                          .newInstance((long) position, 1);
                  case "lastContainedLogOffset" -> position - 1L;
                  case "lastContainedLogEpoch" -> 1;
                  case "lastContainedLogTimestamp" -> clock.now;
                  case "close" -> null;
                  default -> throw new UnsupportedOperationException(method.getName());
                });
  }

  /** The batches that it has not read, up to so many records; it has them from now on. */
  private List<Batch<ApiMessageAndVersion>> next(HeldController controller, int end) {
    List<Batch<ApiMessageAndVersion>> batches = new ArrayList<>();
    for (List<ApiMessage> records : controller.batches(position)) {
      if (position >= end) {
        break;
      }
      List<ApiMessageAndVersion> all =
          records.stream().map(record -> new ApiMessageAndVersion(record, (short) 0)).toList();
      batches.add(Batch.data(position, 1, clock.now, 0, all));
      position += all.size();
    }
    return batches;
  }

  /** One reader of committed batches, of which MetadataLoader makes one delta. */
  private void read(List<Batch<ApiMessageAndVersion>> batches) {
    handle(() -> loader.handleCommit(MemoryBatchReader.of(batches, closed -> {})));
  }

  /** The loader is given this, and its queue is emptied. */
  private void handle(Runnable given) {
    Fields.set(queue, "shuttingDown", false);
    given.run();
    if (!isInstalled) {
      loader.installPublishers(List.of(publisher));
      isInstalled = true;
    }
    queue.append(() -> queue.beginShutdown("the last event"));
    Fields.call(HANDLE_EVENTS, Fields.get(queue, "eventHandler"));
  }

  /** The same without loader and publisher: the three calls that matter here. */
  private void apply(List<Batch<ApiMessageAndVersion>> batches) {
    MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
    batches.forEach(batch -> batch.records().forEach(record -> delta.replay(record.message())));
    image = delta.apply(new MetadataProvenance(position, 1, clock.now, true));
    parts.cache.setImage(image);
    if (delta.topicsDelta() != null) {
      parts.manager.applyDelta(delta.topicsDelta(), image);
    }
  }
}
