package org.apache.kafka.controller;

import kafka.cluster.Partition;
import kafka.coordinator.transaction.TransactionCoordinator;
import kafka.log.LogManager;
import kafka.server.AlterPartitionManager;
import kafka.server.BlockingSend;
import kafka.server.ConfigHandler;
import kafka.server.DefaultAlterPartitionManager;
import kafka.server.DelayedFetch;
import kafka.server.KafkaConfig;
import kafka.server.QuotaFactory;
import kafka.server.QuotaFactory.QuotaManagers;
import kafka.server.RemoteLeaderEndPoint;
import kafka.server.ReplicaFetcherManager;
import kafka.server.ReplicaFetcherThread;
import kafka.server.ReplicaManager;
import kafka.server.ReplicationQuotaManager;
import kafka.server.TopicConfigHandler;
import kafka.server.metadata.BrokerMetadataPublisher;
import kafka.server.metadata.DynamicConfigPublisher;
import kafka.server.share.SharePartitionManager;

import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.FetchSessionHandler;
import org.apache.kafka.clients.ManualMetadataUpdater;
import org.apache.kafka.clients.MockClient;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsTopicResponse;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.AlterPartitionRequest;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.coordinator.share.ShareCoordinator;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.LogDeltaManifest;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.publisher.AclPublisher;
import org.apache.kafka.metadata.publisher.DelegationTokenPublisher;
import org.apache.kafka.metadata.publisher.DynamicClientQuotaPublisher;
import org.apache.kafka.metadata.publisher.DynamicTopicClusterQuotaPublisher;
import org.apache.kafka.metadata.publisher.ScramPublisher;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.ControllerInformation;
import org.apache.kafka.server.DelayedActionQueue;
import org.apache.kafka.server.NodeToControllerQueueItem;
import org.apache.kafka.server.NodeToControllerRequestThread;
import org.apache.kafka.server.PartitionFetchState;
import org.apache.kafka.server.ReplicaFetch;
import org.apache.kafka.server.ResultWithPartitions;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.ControllerRequestCompletionHandler;
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import org.apache.kafka.server.config.ConfigType;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.MockScheduler;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.server.util.timer.MockTimer;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeSet;
import java.util.function.IntFunction;
import java.util.function.LongConsumer;

import scala.Function0;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

import static org.apache.kafka.controller.SimulatedController.TOPIC;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.withSettings;

/**
 * A broker of {@link ReplicationSimulationTest} between its start and its end: Kafka's own classes as BrokerServer puts
 * them together, without threads and sockets.
 */
final class SimulatedBroker {
    static final TopicPartition PARTITION = new TopicPartition(TOPIC, 0);
    static final Node CONTROLLER = new Node(3000, "localhost", 9093);
    /** What has been sent on a connection which is closed by now may still arrive for so long. */
    static final long STALE_REQUEST_MS = 120_000;

    private static final Metrics METRICS = new Metrics();
    private static final Map<String, KafkaConfig> CONFIGS = new HashMap<>();
    private static final Map<KafkaConfig, LogConfig> LOG_CONFIGS = new HashMap<>();
    private static final Map<Integer, QuotaManagers> QUOTAS = new HashMap<>();
    private static final BrokerTopicStats BROKER_TOPIC_STATS = new BrokerTopicStats();
    /** For operations which the simulation does not have. */
    private static final Map<String, DelayedOperationPurgatory<?>> IDLE_PURGATORIES = new HashMap<>();

    static {
        // Nobody looks at them, and they take most of the time in which a broker starts.
        KafkaYammerMetrics.INSTANCE.configure(Map.of(JmxReporter.EXCLUDE_CONFIG, ".*"));
    }

    final int id;
    final KafkaConfig config;
    final MockScheduler scheduler;
    final MockTimer timer;
    final KRaftMetadataCache metadataCache;
    final LogManager logManager;
    final ChannelManager channel;
    final ReplicaManager replicaManager;
    final BrokerMetadataPublisher publisher;
    final long brokerEpoch;

    boolean isRunning = true;
    boolean wantShutDown;
    MetadataImage image = MetadataImage.EMPTY;
    int numBatches;
    boolean isLogRead;
    FetchExchange fetch;

    private final File logDir;
    private final int minInSyncReplicas;
    private final MockTime time;
    private final IntFunction<SimulatedBroker> brokers;

    /** Another broker is null while it does not run. */
    SimulatedBroker(int id, long brokerEpoch, File logDir, int minInSyncReplicas, MockTime time,
                    IntFunction<SimulatedBroker> brokers) throws IOException {
        this.id = id;
        this.brokerEpoch = brokerEpoch;
        this.logDir = logDir;
        this.minInSyncReplicas = minInSyncReplicas;
        this.time = time;
        this.brokers = brokers;
        config = CONFIGS.computeIfAbsent(id + "-" + minInSyncReplicas, key -> createConfig());
        QuotaManagers quotas = QUOTAS.computeIfAbsent(id, key ->
            QuotaFactory.instantiate(config, METRICS, time, "broker-" + id, ""));
        scheduler = new MockScheduler(time);
        timer = new MockTimer(time);
        metadataCache = new KRaftMetadataCache(id, () -> KRaftVersion.LATEST_PRODUCTION);
        LogDirFailureChannel logDirFailureChannel = new LogDirFailureChannel(1);
        logManager = createLogManager(logDirFailureChannel);
        channel = new ChannelManager(config, time);
        Function0<Object> brokerEpochSupplier = () -> brokerEpoch;
        AlterPartitionManager alterPartitionManager =
            new DefaultAlterPartitionManager(channel, scheduler, time, id, brokerEpochSupplier);
        replicaManager = new ReplicaManager(config, METRICS, time, scheduler, logManager, Option.empty(), quotas,
            metadataCache, logDirFailureChannel, alterPartitionManager, BROKER_TOPIC_STATS, purgatory("Produce"),
            this.<DelayedFetch>purgatory("Fetch"), idlePurgatory("DeleteRecords"), idlePurgatory("RemoteFetch"),
            idlePurgatory("RemoteListOffsets"), idlePurgatory("ShareFetch"), brokerEpochSupplier, Option.empty(),
            DirectoryEventHandler.NOOP, new DelayedActionQueue()) {
            @Override
            public ReplicaFetcherManager createReplicaFetcherManager(Metrics metrics, Time time,
                                                                     ReplicationQuotaManager quotaManager) {
                return SimulatedBroker.this.createReplicaFetcherManager(this, quotaManager);
            }
        };
        publisher = createPublisher(quotas);
    }

    private <T extends DelayedOperation> Option<DelayedOperationPurgatory<T>> purgatory(String name) {
        return Option.apply(new DelayedOperationPurgatory<>(name, timer, id, 1000, false, true));
    }

    @SuppressWarnings("unchecked")
    private <T extends DelayedOperation> Option<DelayedOperationPurgatory<T>> idlePurgatory(String name) {
        return Option.apply((DelayedOperationPurgatory<T>) IDLE_PURGATORIES.computeIfAbsent(name, key ->
            new DelayedOperationPurgatory<T>(name, new MockTimer(time), 0, 1000, false, false)));
    }

    private KafkaConfig createConfig() {
        Properties props = new Properties();
        props.put("process.roles", "broker");
        props.put("node.id", Integer.toString(id));
        props.put("controller.quorum.voters", "3000@localhost:9093");
        props.put("controller.listener.names", "CONTROLLER");
        props.put("listeners", "PLAINTEXT://localhost:" + (9092 + id));
        props.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
        props.put("log.dirs", logDir.toString());
        props.put("log.index.size.max.bytes", "65536");
        props.put("log.index.interval.bytes", "100"); // a read does not look through the whole log
        props.put("min.insync.replicas", Integer.toString(minInSyncReplicas));
        props.put("replica.fetch.backoff.ms", "0");
        props.put("replica.high.watermark.checkpoint.interval.ms", "30000");
        props.put("replica.fetch.max.bytes", "200"); // a few records in a response
        return new KafkaConfig(props, false);
    }

    private LogManager createLogManager(LogDirFailureChannel channel) throws IOException {
        Seq<File> logDirs = CollectionConverters.asScala(List.of(logDir)).toSeq();
        Seq<File> offlineDirs = CollectionConverters.asScala(List.<File>of()).toSeq();
        LogConfig logConfig = LOG_CONFIGS.computeIfAbsent(config, key -> new LogConfig(key.extractLogConfigMap()));
        return new LogManager(logDirs, offlineDirs, metadataCache, logConfig,
            new CleanerConfig(false), 1, 1000L, 60000L, 900000L, 300000L, 900000,
            new ProducerStateManagerConfig(86400000, false), 600000, scheduler, BROKER_TOPIC_STATS, channel, time,
            false, 30000L, null);
    }

    private ReplicaFetcherManager createReplicaFetcherManager(ReplicaManager manager, ReplicationQuotaManager quota) {
        return new ReplicaFetcherManager(config, manager, METRICS, time, quota,
            () -> metadataCache.metadataVersion(), () -> brokerEpoch) {
            @Override
            public ReplicaFetcherThread createFetcherThread(int fetcherId, BrokerEndPoint source) {
                Sender sender = new Sender(source, brokers);
                return new FetcherThread(sender, new LeaderEndPoint(sender, SimulatedBroker.this),
                    SimulatedBroker.this);
            }
        };
    }

    private BrokerMetadataPublisher createPublisher(QuotaManagers quotas) {
        return new BrokerMetadataPublisher(config, metadataCache, logManager, replicaManager,
            stub(GroupCoordinator.class), stub(TransactionCoordinator.class), stub(ShareCoordinator.class),
            stub(SharePartitionManager.class),
            new DynamicConfigPublisher(config, this::handleFault, topicConfigHandler(quotas), "broker"),
            new DynamicClientQuotaPublisher(id, this::handleFault, "broker", delta -> { }),
            new DynamicTopicClusterQuotaPublisher("cluster", id, this::handleFault, "broker", Optional.empty(),
                () -> { }),
            new ScramPublisher(id, this::handleFault, "broker", null),
            new DelegationTokenPublisher(id, this::handleFault, "broker", null),
            new AclPublisher(id, this::handleFault, "broker", Optional.empty()),
            this::handleFault, this::handleFault);
    }

    private scala.collection.immutable.Map<ConfigType, ConfigHandler> topicConfigHandler(QuotaManagers quotas) {
        return scala.collection.immutable.Map$.MODULE$.<ConfigType, ConfigHandler>from(CollectionConverters.asScala(
            Map.of(ConfigType.TOPIC, new TopicConfigHandler(replicaManager, config, quotas))));
    }

    private static final Map<Class<?>, Object> STUBS = new HashMap<>();

    private static <T> T stub(Class<T> type) {
        return type.cast(STUBS.computeIfAbsent(type, key -> type.isInterface() ?
            Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, values) -> null) :
            mock(type, withSettings().stubOnly())));
    }

    private RuntimeException handleFault(String message, Throwable cause) {
        throw new IllegalStateException("Broker " + id + ": " + message, cause);
    }

    Partition partition() {
        Option<Partition> partition = replicaManager.onlinePartition(PARTITION);
        return partition.isEmpty() ? null : partition.get();
    }

    boolean isLeader() {
        return partition() != null && partition().isLeader();
    }

    UnifiedLog log() {
        Option<UnifiedLog> log = logManager.getLog(PARTITION, false);
        return log.isEmpty() ? null : log.get();
    }

    FetcherThread fetcher() {
        Option<ReplicaFetcherThread> fetcher = replicaManager.replicaFetcherManager().getFetcher(PARTITION);
        return fetcher.isEmpty() ? null : (FetcherThread) fetcher.get();
    }

    long metadataOffset() {
        return image.provenance().lastContainedOffset();
    }

    /** One delta of the next batches. The first that a broker gets is an image of all that there is. */
    void publish(List<List<ApiMessageAndVersion>> batches, long timeMs) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        long offset = metadataOffset();
        for (List<ApiMessageAndVersion> batch : batches) {
            for (ApiMessageAndVersion record : batch) {
                delta.replay(record.message());
            }
            offset += batch.size();
        }
        numBatches += batches.size();
        MetadataProvenance provenance = new MetadataProvenance(offset, 1, timeMs, true);
        image = delta.apply(provenance);
        publisher.onMetadataUpdate(delta, image, LogDeltaManifest.newBuilder().
            provenance(provenance).
            leaderAndEpoch(LeaderAndEpoch.UNKNOWN).
            numBatches(batches.size()).
            elapsedNs(100).
            numBytes(100).
            build());
    }

    /** A record of a producer with acks=all. The offset is known when it is acknowledged. */
    void append(int value, LongConsumer onAcknowledgement) {
        SimpleRecord record = new SimpleRecord(time.milliseconds(), null, ByteBuffer.allocate(4).putInt(0, value));
        TopicIdPartition partition = new TopicIdPartition(metadataCache.getTopicId(TOPIC), PARTITION);
        replicaManager.appendRecords(60_000L, (short) -1, false, AppendOrigin.CLIENT,
            CollectionConverters.asScala(Map.of(partition, MemoryRecords.withRecords(Compression.NONE, record))),
            responses -> {
                PartitionResponse response = responses.values().iterator().next();
                if (response.error == Errors.NONE) {
                    onAcknowledgement.accept(response.baseOffset);
                }
                return BoxedUnit.UNIT;
            },
            stats -> BoxedUnit.UNIT, RequestLocal.noCaching(), CollectionConverters.asScala(Map.of()),
            TransactionVersion.TV_UNKNOWN);
    }

    /** A fetch reaches its leader, which this is. */
    void receive(FetchExchange fetch) {
        fetch.isReceived = true;
        FetchRequest request = fetch.request;
        FetchParams params = new FetchParams(request.replicaId(), request.replicaEpoch(), request.maxWait(),
            request.minBytes(), request.maxBytes(), FetchIsolation.of(request), Optional.empty());
        List<Tuple2<TopicIdPartition, FetchRequest.PartitionData>> partitions = new ArrayList<>();
        request.fetchData(metadataCache.topicIdsToNames()).forEach((partition, data) ->
            partitions.add(new Tuple2<>(partition, data)));
        if (partitions.get(0)._1().topic() == null) {
            fetch.response = response(new TopicIdPartition(partitions.get(0)._1().topicId(), PARTITION),
                FetchResponse.partitionResponse(0, Errors.UNKNOWN_TOPIC_ID));
            return;
        }
        replicaManager.fetchMessages(params, CollectionConverters.asScala(partitions).toSeq(),
            QuotaFactory.UNBOUNDED_QUOTA, results -> {
                fetch.response = response(results.head()._1(), partitionData(results.head()._2()));
                return BoxedUnit.UNIT;
            });
        replicaManager.tryCompleteActions();
    }

    private static FetchResponse response(TopicIdPartition partition, FetchResponseData.PartitionData data) {
        LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> responses = new LinkedHashMap<>();
        responses.put(partition, data);
        return FetchResponse.of(Errors.NONE, 0, FetchMetadata.INVALID_SESSION_ID, responses, List.of());
    }

    private static FetchResponseData.PartitionData partitionData(FetchPartitionData result) {
        FetchResponseData.PartitionData data = new FetchResponseData.PartitionData().
            setPartitionIndex(0).
            setErrorCode(result.error.code()).
            setHighWatermark(result.highWatermark).
            setLastStableOffset(result.lastStableOffset.orElse(FetchResponse.INVALID_LAST_STABLE_OFFSET)).
            setLogStartOffset(result.logStartOffset).
            setRecords(toMemoryRecords(result.records));
        result.divergingEpoch.ifPresent(data::setDivergingEpoch);
        return data;
    }

    static MemoryRecords toMemoryRecords(Records records) {
        if (records instanceof FileRecords fileRecords && fileRecords.sizeInBytes() > 0) {
            try {
                ByteBuffer buffer = ByteBuffer.allocate(fileRecords.sizeInBytes());
                fileRecords.readInto(buffer, 0);
                return MemoryRecords.readableRecords(buffer);
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }
        return records instanceof MemoryRecords memoryRecords ? memoryRecords : MemoryRecords.EMPTY;
    }

    private static ListOffsetsResponse listOffsets(SimulatedBroker leader, ListOffsetsRequest request) {
        ListOffsetsPartition partition = request.topics().get(0).partitions().get(0);
        Errors error = leader == null || !leader.isLeader() ? Errors.NOT_LEADER_OR_FOLLOWER :
            leader.partition().getLeaderEpoch() != partition.currentLeaderEpoch() ? Errors.FENCED_LEADER_EPOCH :
            Errors.NONE;
        ListOffsetsPartitionResponse response = new ListOffsetsPartitionResponse().
            setPartitionIndex(0).
            setErrorCode(error.code());
        if (error == Errors.NONE) {
            boolean isLatest = partition.timestamp() == ListOffsetsRequest.LATEST_TIMESTAMP;
            response.setOffset(isLatest ? leader.log().logEndOffset() : leader.log().logStartOffset());
            response.setLeaderEpoch(leader.log().latestEpoch().orElse(0));
        }
        return new ListOffsetsResponse(new ListOffsetsResponseData().setTopics(List.of(
            new ListOffsetsTopicResponse().setName(TOPIC).setPartitions(List.of(response)))));
    }

    void shutdown() throws IOException {
        replicaManager.shutdown(true);
        logManager.shutdown(brokerEpoch);
        isRunning = false;
    }

    /** Nothing is written to the disk any more. What has been written stays. */
    void kill() throws IOException {
        replicaManager.shutdown(false);
        CollectionConverters.asJava(logManager.allLogs()).forEach(UnifiedLog::closeHandlers);
        for (FileLock lock : CollectionConverters.asJava(logManager.dirLocks())) {
            lock.destroy();
        }
        isRunning = false;
    }

    String describe(String entries) {
        if (numBatches == 0) {
            return "broker " + id + ": starts";
        }
        UnifiedLog log = log();
        String logState = log == null ? "no log" : String.format(
            "log %s, high watermark %d, min.insync.replicas %d", entries, log.highWatermark(),
            log.config().minInSyncReplicas);
        Partition partition = partition();
        if (partition == null) {
            return String.format("broker %d: no replica, %s", id, logState);
        }
        String role = partition.isLeader() ?
            "leads, ISR " + new TreeSet<>(partition.partitionState().isr()) + (partition.partitionState().isInflight() ?
                ", waits for " + new TreeSet<>(partition.partitionState().maximalIsr()) : "") :
            partition.leaderReplicaIdOpt().isEmpty() ? "follows nobody" :
                "follows " + partition.leaderReplicaIdOpt().get();
        return String.format("broker %d: %s in epoch %d, partition epoch %d, %s", id, role,
            partition.getLeaderEpoch(), partition.getPartitionEpoch(), logState);
    }

    // What it sends, and by what

    /** A request of a fetcher thread, and its response. */
    static final class FetchExchange {
        final FetcherThread fetcher;
        final ReplicaFetch fetch;
        final FetchRequest request;
        final SimulatedBroker leader;
        final long sentMs;
        boolean isReceived;
        FetchResponse response;

        FetchExchange(FetcherThread fetcher, ReplicaFetch fetch, SimulatedBroker leader, long sentMs) {
            this.fetcher = fetcher;
            this.fetch = fetch;
            this.request = fetch.fetchRequest().build();
            this.leader = leader;
            this.sentMs = sentMs;
        }

        @Override
        public String toString() {
            FetchRequest.PartitionData data = fetch.partitionData().get(PARTITION);
            return String.format("(offset %d, epoch %d)", data.fetchOffset, data.currentLeaderEpoch.orElse(-1));
        }
    }

    /** A request to the controller, and its response. */
    static final class AlterPartitionExchange {
        final ClientRequest request;
        final AlterPartitionRequestData data;
        final SimulatedBroker leader;
        final long sentMs;
        AlterPartitionResponseData response;

        AlterPartitionExchange(ClientRequest request, SimulatedBroker leader, long sentMs) {
            this.request = request;
            this.data = ((AlterPartitionRequest) request.requestBuilder().build()).data().duplicate();
            this.leader = leader;
            this.sentMs = sentMs;
        }

        boolean isConnected() {
            return leader.isRunning && leader.channel.client.requests().contains(request);
        }

        AlterPartitionRequestData.PartitionData partition() {
            return data.topics().get(0).partitions().get(0);
        }

        List<Integer> newIsr() {
            return partition().newIsrWithEpochs().stream().map(BrokerState::brokerId).toList();
        }

        boolean isExpired(long nowMs) {
            return !isConnected() && nowMs - sentMs > STALE_REQUEST_MS;
        }

        /** It has not arrived, and it is about the partition as it is. */
        boolean mayBeAccepted(PartitionRegistration registration, long nowMs) {
            return response == null && data.brokerId() == registration.leader &&
                partition().leaderEpoch() == registration.leaderEpoch &&
                partition().partitionEpoch() == registration.partitionEpoch && !isExpired(nowMs);
        }

        @Override
        public String toString() {
            return new TreeSet<>(newIsr()) + " at partition epoch " + partition().partitionEpoch();
        }
    }

    /** RemoteLeaderEndPoint, whose requests the simulation sends. */
    private static final class LeaderEndPoint extends RemoteLeaderEndPoint {
        private ReplicaFetch fetch;

        LeaderEndPoint(Sender sender, SimulatedBroker broker) {
            super("", sender, new FetchSessionHandler(new LogContext(), sender.brokerEndPoint().id()), broker.config,
                broker.replicaManager, QuotaFactory.UNBOUNDED_QUOTA, () -> broker.metadataCache.metadataVersion(),
                () -> broker.brokerEpoch);
        }

        @Override
        public ResultWithPartitions<Optional<ReplicaFetch>> buildFetch(
            Map<TopicPartition, PartitionFetchState> states
        ) {
            ResultWithPartitions<Optional<ReplicaFetch>> result = super.buildFetch(states);
            fetch = result.result().orElse(null);
            return new ResultWithPartitions<>(Optional.empty(), result.partitionsWithError());
        }
    }

    /** ReplicaFetcherThread without a thread: doWork builds a request, and the response is handled by itself. */
    static final class FetcherThread extends ReplicaFetcherThread {
        private final Sender sender;
        private final LeaderEndPoint endPoint;

        FetcherThread(Sender sender, LeaderEndPoint endPoint, SimulatedBroker broker) {
            super("ReplicaFetcherThread-0-" + sender.brokerEndPoint().id(), endPoint, broker.config,
                broker.replicaManager.replicaFetcherManager().failedPartitions(), broker.replicaManager,
                QuotaFactory.UNBOUNDED_QUOTA, "");
            this.sender = sender;
            this.endPoint = endPoint;
        }

        @Override
        public void start() { }

        @Override
        public void awaitShutdown() { }

        ReplicaFetch nextFetch() {
            endPoint.fetch = null;
            doWork();
            return endPoint.fetch;
        }

        void handleResponse(FetchExchange exchange) {
            sender.fetchResponse = exchange.response;
            processFetchRequest(exchange.fetch.partitionData(), exchange.fetch.fetchRequest());
            sender.fetchResponse = null;
        }
    }

    /** A connection to another broker: the response is the one which the simulation delivers. */
    private static final class Sender implements BlockingSend {
        private final BrokerEndPoint leader;
        private final IntFunction<SimulatedBroker> brokers;
        private FetchResponse fetchResponse;

        Sender(BrokerEndPoint leader, IntFunction<SimulatedBroker> brokers) {
            this.leader = leader;
            this.brokers = brokers;
        }

        @Override
        public BrokerEndPoint brokerEndPoint() {
            return leader;
        }

        @Override
        public ClientResponse sendRequest(AbstractRequest.Builder<? extends AbstractRequest> builder) {
            AbstractRequest request = builder.build();
            AbstractResponse response = request instanceof ListOffsetsRequest listOffsets ?
                listOffsets(brokers.apply(leader.id()), listOffsets) : fetchResponse;
            return new ClientResponse(new RequestHeader(request.apiKey(), request.version(), "", 0), null, "", 0, 0,
                false, null, null, response);
        }

        @Override
        public void initiateClose() { }

        @Override
        public void close() { }
    }

    /** NodeToControllerRequestThread without a thread, on a MockClient. */
    static final class ChannelManager implements NodeToControllerChannelManager {
        final MockClient client;
        private final MockTime time;
        private final NodeToControllerRequestThread thread;

        ChannelManager(KafkaConfig config, MockTime time) {
            this.time = time;
            client = new MockClient(time, List.of(CONTROLLER));
            thread = new NodeToControllerRequestThread(client, new ManualMetadataUpdater(),
                () -> new ControllerInformation(Optional.of(CONTROLLER), ListenerName.normalised("CONTROLLER"),
                    SecurityProtocol.PLAINTEXT, ""),
                config, time, "to-controller", Long.MAX_VALUE);
            thread.setStarted(true);
        }

        @Override
        public void sendRequest(AbstractRequest.Builder<? extends AbstractRequest> request,
                                ControllerRequestCompletionHandler callback) {
            thread.enqueue(new NodeToControllerQueueItem(time.milliseconds(), request, callback));
        }

        void poll() {
            do {
                thread.doWork();
            } while (thread.queueSize() > 0 || client.hasPendingResponses());
        }

        boolean isIdle() {
            return thread.queueSize() == 0 && !client.hasPendingResponses() && !client.hasInFlightRequests();
        }

        @Override
        public void start() { }

        @Override
        public void shutdown() { }

        @Override
        public Optional<NodeApiVersions> controllerApiVersions() {
            return Optional.empty();
        }

        @Override
        public long getTimeoutMs() {
            return Long.MAX_VALUE;
        }
    }
}
