package org.apache.kafka.controller;

import kafka.cluster.Partition;
import kafka.coordinator.transaction.TransactionCoordinator;
import kafka.log.LogManager;
import kafka.server.AlterPartitionManager;
import kafka.server.BlockingSend;
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
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.DuplicateBrokerRegistrationException;
import org.apache.kafka.common.errors.StaleBrokerEpochException;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignablePartition;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignableTopic;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsTopicResponse;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.AlterPartitionRequest;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.common.requests.FetchMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.coordinator.share.ShareCoordinator;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.LogDeltaManifest;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
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
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TransactionVersion;
import org.apache.kafka.server.config.ConfigType;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.partition.PartitionState;
import org.apache.kafka.server.partition.PendingExpandIsr;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.replica.ReplicaState;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.MockScheduler;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.server.util.timer.MockTimer;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import org.junit.jupiter.api.Test;

import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import scala.Function0;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

import static org.apache.kafka.controller.ControllerRequestContextUtil.anonymousContextFor;
import static org.junit.jupiter.api.Assertions.fail;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.withSettings;

/**
 * A deterministic simulation of the replication of one partition: a controller and four brokers in one thread, with a
 * mock clock. A seed gives a sequence of random events. After each of them the invariants are checked. What breaks one
 * is cut down to the events which matter, and told step by step.
 *
 *     mvn -q test -Dtest=ReplicationSimulationTest                             # seeds 1, 2, ..., a minute of processor
 *     mvn -q test -Dtest=ReplicationSimulationTest -Dsimulation.seed=42        # this one
 *
 * Kafka's own are: ReplicationControlManager, ClusterControlManager, BrokerHeartbeatManager,
 * ConfigurationControlManager; and of each broker BrokerMetadataPublisher, DynamicConfigPublisher, KRaftMetadataCache,
 * ReplicaManager, Partition, the purgatories, LogManager, UnifiedLog and its files, ReplicaFetcherManager,
 * ReplicaFetcherThread, RemoteLeaderEndPoint, DefaultAlterPartitionManager and NodeToControllerRequestThread.
 *
 * Not simulated, and simpler here than in Kafka:
 * - The metadata log is a list. What the controller decides is committed at once; there is one controller.
 * - MetadataLoader: a broker gets the next records as one delta, as many as the event says.
 * - KafkaApis, and fetch sessions: each fetch is a full one. ListOffsets is answered at once.
 * - BrokerLifecycleManager: a heartbeat is handled and answered at once, or is not sent.
 * - Producers: each record is sent once, to a broker which takes itself for the leader, with acks=all.
 * - replica.fetch.backoff.ms is 0. How long a fetch takes is up to the events.
 */
public class ReplicationSimulationTest {
    private static final int NUM_BROKERS = 4;
    private static final String TOPIC = "foo";
    private static final TopicPartition PARTITION = new TopicPartition(TOPIC, 0);
    private static final long START_MS = 1_000_000_000L;
    private static final long HEARTBEAT_INTERVAL_MS = 8000; // less than broker.session.timeout.ms
    private static final Node CONTROLLER = new Node(3000, "localhost", 9093);
    /** What has been sent on a connection which is closed by now may still arrive for so long. */
    private static final long STALE_REQUEST_MS = 120_000;
    /** replica.socket.timeout.ms and controller.socket.timeout.ms. */
    private static final long SOCKET_TIMEOUT_MS = 30_000;

    private static final int EVENTS_PER_RUN = Integer.getInteger("simulation.events", 2000);
    /** With this only the loss of a record is a violation, and not yet what makes one possible. */
    private static final boolean ONLY_LOSS = Boolean.getBoolean("simulation.loss");

    @Test
    public void testAcknowledgedRecordsSurvive() throws Exception {
        String givenSeed = System.getProperty("simulation.seed");
        long firstSeed = givenSeed == null ? Long.getLong("simulation.first.seed", 1) : Long.parseLong(givenSeed);
        long maxSeconds = Long.getLong("simulation.seconds", 60);
        long runs = 0;
        long numEvents = 0;
        double start = processorSeconds();
        for (long seed = firstSeed; seed == firstSeed || givenSeed == null; seed++) {
            if (processorSeconds() - start > maxSeconds) {
                break;
            }
            List<Event> events = new ArrayList<>();
            Optional<Violation> violation;
            try (Simulation simulation = new Simulation(seed, false)) {
                violation = simulation.runRandomly(events);
                numEvents += simulation.numSteps;
            }
            runs++;
            if (violation.isPresent()) {
                double seconds = processorSeconds() - start;
                fail(String.format("%s%nSeed %d, the %d. run, after %.0f s of processor and %d events.%n%n%s",
                    violation.get().getMessage(), seed, runs, seconds, numEvents,
                    Boolean.parseBoolean(System.getProperty("simulation.shrink", "true")) ?
                        new Shrinker(seed, violation.get()).shrink(events) : ""), violation.get());
            }
        }
        double seconds = processorSeconds() - start;
        System.out.printf("%d runs, %d events, %.0f events per second of processor: no violation%n",
            runs, numEvents, numEvents / seconds);
    }

    // Sequences of events which random seeds lead to, without the events between them that do not matter.

    /** Broker 0 leads, broker 2, broker 0, and it hears of both elections in one delta. Broker 1 has truncated. */
    @Test
    public void testTwoElectionsInOneDelta() throws Exception {
        replay(2, List.of(0, 1, 2),
            event(EventType.PRODUCE, 0), event(EventType.FETCH, 1), event(EventType.FETCH, 1),
            event(EventType.DISCONNECT, 2), event(EventType.ELECTION, 2), event(EventType.METADATA, 2),
            event(EventType.METADATA, 1), event(EventType.FETCH, 1), event(EventType.FETCH, 1),
            event(EventType.SHUTDOWN, 2), event(EventType.METADATA, 0));
    }

    /** Both followers come back into the ISR. The leader hears of the first from a response, and later by a delta. */
    @Test
    public void testMetadataAfterResponseToAlterPartition() throws Exception {
        replay(2, List.of(0, 1, 2),
            event(EventType.PRODUCE, 0), event(EventType.DISCONNECT, 1), event(EventType.DISCONNECT, 2),
            new Event(EventType.LAG, 0, 1), event(EventType.ALTER_PARTITION, 0), event(EventType.ALTER_PARTITION, 0),
            event(EventType.METADATA, 0), event(EventType.FETCH, 1), event(EventType.ALTER_PARTITION, 0),
            event(EventType.ALTER_PARTITION, 0), event(EventType.FETCH, 2), event(EventType.METADATA, 0),
            event(EventType.FETCH, 1), event(EventType.FETCH, 1), event(EventType.ALTER_PARTITION, 0));
    }

    /** A copy of an AlterPartition is rejected while broker 2 is fenced, and the first copy arrives after that. */
    @Test
    public void testCopyOfAlterPartitionOnClosedConnection() throws Exception {
        replay(2, List.of(0, 1, 2),
            event(EventType.PRODUCE, 0), event(EventType.DISCONNECT, 1), event(EventType.DISCONNECT, 2),
            new Event(EventType.LAG, 0, 1), event(EventType.ALTER_PARTITION, 0), event(EventType.ALTER_PARTITION, 0),
            event(EventType.METADATA, 0), event(EventType.FETCH, 1), event(EventType.ALTER_PARTITION, 0),
            event(EventType.ALTER_PARTITION, 0), event(EventType.METADATA, 0), event(EventType.FETCH, 1),
            event(EventType.FETCH, 1), event(EventType.FETCH, 2), event(EventType.FETCH, 2), event(EventType.FETCH, 2),
            new Event(EventType.DISCONNECT, 0, 1), new Event(EventType.LOSE_SESSION, 2, 1),
            event(EventType.ALTER_PARTITION, 0), event(EventType.ALTER_PARTITION, 0),
            event(EventType.METADATA, 0), event(EventType.PRODUCE, 0), event(EventType.FETCH, 1),
            event(EventType.FETCH, 1), event(EventType.FETCH, 1), event(EventType.FETCH, 1),
            event(EventType.HEARTBEAT, 2), event(EventType.STALE_ALTER_PARTITION, 0));
    }

    /** min.insync.replicas is raised, then broker 1 shuts down. The leader hears of both in one delta. */
    @Test
    public void testMinInSyncReplicasRaised() throws Exception {
        replay(1, List.of(0, 1),
            event(EventType.PRODUCE, 0), new Event(EventType.MIN_ISR, 0, 1), event(EventType.SHUTDOWN, 1),
            event(EventType.METADATA, 0));
    }

    /** Two of three replicas are down, and the third one is moved to broker 3. */
    @Test
    public void testReassignmentUnderMinIsr() throws Exception {
        replay(2, List.of(0, 1, 2),
            event(EventType.SHUTDOWN, 1), event(EventType.SHUTDOWN, 2),
            new Event(EventType.REASSIGN, 0, Simulation.ASSIGNMENTS.indexOf(List.of(3, 1, 2))),
            event(EventType.METADATA, 0), event(EventType.METADATA, 3), event(EventType.FETCH, 3),
            event(EventType.ALTER_PARTITION, 0));
    }

    private static Event event(EventType type, int broker) {
        return new Event(type, broker, 0);
    }

    private static void replay(int minInSyncReplicas, List<Integer> replicas, Event... events) throws Exception {
        try (Simulation simulation = new Simulation(new Random(0), minInSyncReplicas, replicas, true)) {
            Optional<Violation> violation = simulation.replay(List.of(events));
            if (violation.isPresent()) {
                fail(violation.get().getMessage() + System.lineSeparator() + simulation.story(), violation.get());
            }
        }
    }

    private static double processorSeconds() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9;
    }

    // Events

    private enum EventType {
        PRODUCE(8), FETCH(2), METADATA(2), ALTER_PARTITION(2), HEARTBEAT(6), START(6), RELEASE(2), TICK(2), RECOVER(0),
        SLEEP(1, true), LAG(4, true), LOSE_SESSION(5, true), HOLD(3, true), DISCONNECT(3, true), STALE_FETCH(2, true),
        STALE_ALTER_PARTITION(3), ELECTION(6, true), REASSIGN(2, true), CANCEL_REASSIGNMENT(2, true),
        MIN_ISR(4, true), SHUTDOWN(4, true), KILL(2, true), POWER_LOSS(2, true);

        final int weight;
        /** Whether there are parts of a run without it. */
        final boolean isFault;

        EventType(int weight) {
            this(weight, false);
        }

        EventType(int weight, boolean isFault) {
            this.weight = weight;
            this.isFault = isFault;
        }
    }

    /** What the network can hold back: everything of one kind that a broker sends, or is sent. */
    private enum Link {
        FETCH, FETCH_RESPONSE, METADATA, ALTER_PARTITION, ALTER_PARTITION_RESPONSE, HEARTBEAT
    }

    /** An event, which does nothing where it is not possible. What the number means depends on the type. */
    private record Event(EventType type, int broker, int number) { }

    private static final class Violation extends RuntimeException {
        final String invariant;

        Violation(String invariant, String message, Throwable cause) {
            super(invariant + ": " + message, cause);
            this.invariant = invariant;
        }
    }

    /** Leaves out events for as long as the same invariant is broken without them. */
    private record Shrinker(long seed, Violation violation) {
        private static final int MAX_RUNS = 300;

        String shrink(List<Event> original) throws Exception {
            int lastPart = original.subList(0, original.size() - 1).lastIndexOf(new Event(EventType.RECOVER, 0, 0)) + 1;
            List<Event> part = original.subList(lastPart, original.size());
            List<Event> events = isViolation(part) ? part : original;
            int runs = 1;
            for (int size = Math.max(1, events.size() / 2); size > 0 && runs < MAX_RUNS; ) {
                boolean shorter = false;
                for (int from = events.size() - size; from >= 0 && runs < MAX_RUNS; from -= size) {
                    List<Event> fewer = new ArrayList<>(events.subList(0, from));
                    fewer.addAll(events.subList(from + size, events.size()));
                    runs++;
                    if (isViolation(fewer)) {
                        events = fewer;
                        shorter = true;
                        from = Math.min(from, events.size());
                    }
                }
                size = size == 1 && shorter ? 1 : size / 2;
            }
            try (Simulation simulation = new Simulation(seed, true)) {
                simulation.replay(events);
                return simulation.story();
            }
        }

        private boolean isViolation(List<Event> events) throws Exception {
            try (Simulation simulation = new Simulation(seed, false)) {
                return simulation.replay(events).filter(v -> v.invariant.equals(violation.invariant)).isPresent();
            }
        }
    }

    // The controller

    /** The controller without Raft: the records of each decision are a batch, which is committed at once. */
    private static final class Controller extends ReplicationControlTestContext {
        final List<List<ApiMessageAndVersion>> batches = new ArrayList<>();
        private final Runnable onPartitionChange;
        private long nextOffset;

        Controller(int minInSyncReplicas, MockTime time, Runnable onPartitionChange) {
            super(Integer.toString(minInSyncReplicas), time);
            this.onPartitionChange = onPartitionChange;
            append(List.of(
                featureLevel(MetadataVersion.FEATURE_NAME, MetadataVersion.latestProduction().featureLevel()),
                featureLevel(EligibleLeaderReplicasVersion.FEATURE_NAME,
                    EligibleLeaderReplicasVersion.ELRV_1.featureLevel())));
        }

        private static ApiMessageAndVersion featureLevel(String name, short level) {
            return new ApiMessageAndVersion(new FeatureLevelRecord().setName(name).setFeatureLevel(level), (short) 0);
        }

        private void append(List<ApiMessageAndVersion> records) {
            batches.add(records);
            nextOffset += records.size();
        }

        @Override
        void replay(List<ApiMessageAndVersion> records) {
            if (records.isEmpty()) {
                return;
            }
            long offset = nextOffset;
            for (ApiMessageAndVersion record : records) {
                replay(record.message(), offset++);
            }
            append(records);
            onPartitionChange.run();
        }

        private void replay(ApiMessage message, long offset) {
            if (message instanceof RegisterBrokerRecord record) {
                clusterControl.replay(record, offset);
            } else if (message instanceof BrokerRegistrationChangeRecord record) {
                clusterControl.replay(record);
            } else if (message instanceof ConfigRecord record) {
                configurationControl.replay(record);
            } else if (message instanceof TopicRecord record) {
                replicationControl.replay(record);
            } else if (message instanceof PartitionRecord record) {
                replicationControl.replay(record);
            } else if (message instanceof PartitionChangeRecord record) {
                replicationControl.replay(record);
            } else if (message instanceof ClearElrRecord record) {
                replicationControl.replay(record);
            } else {
                throw new IllegalStateException("Unexpected record " + message);
            }
        }

        /** The new broker epoch; empty if the session of the last incarnation is still valid. */
        OptionalLong registerBroker(int brokerId, Uuid incarnationId, OptionalLong previousBrokerEpoch) {
            BrokerRegistrationRequestData request = new BrokerRegistrationRequestData().
                setBrokerId(brokerId).
                setClusterId(clusterControl.clusterId()).
                setIncarnationId(incarnationId).
                setLogDirs(List.of(logDirId(brokerId))).
                setPreviousBrokerEpoch(previousBrokerEpoch.orElse(-1));
            request.listeners().add(new BrokerRegistrationRequestData.Listener().
                setName("PLAINTEXT").
                setHost("localhost").
                setPort(9092 + brokerId).
                setSecurityProtocol(SecurityProtocol.PLAINTEXT.id));
            request.features().add(new BrokerRegistrationRequestData.Feature().
                setName(MetadataVersion.FEATURE_NAME).
                setMinSupportedVersion(MetadataVersion.MINIMUM_VERSION.featureLevel()).
                setMaxSupportedVersion(MetadataVersion.latestTesting().featureLevel()));
            request.features().add(new BrokerRegistrationRequestData.Feature().
                setName(EligibleLeaderReplicasVersion.FEATURE_NAME).
                setMinSupportedVersion((short) 0).
                setMaxSupportedVersion((short) 1));
            long brokerEpoch = nextOffset;
            try {
                replay(clusterControl.registerBroker(request, brokerEpoch,
                    new FinalizedControllerFeatures(featureControl.finalizedFeatures(Long.MAX_VALUE).featureMap(),
                        Long.MAX_VALUE), true).records());
                // The record of the registration comes after those about the shutdown of the last incarnation.
                return OptionalLong.of(clusterControl.registration(brokerId).epoch());
            } catch (DuplicateBrokerRegistrationException e) {
                return OptionalLong.empty();
            }
        }

        BrokerHeartbeatReply heartbeat(int brokerId, long brokerEpoch, long metadataOffset, boolean wantShutDown) {
            clusterControl.trackBrokerHeartbeat(brokerId, brokerEpoch);
            ControllerResult<BrokerHeartbeatReply> result = replicationControl.processBrokerHeartbeat(
                new BrokerHeartbeatRequestData().
                    setBrokerId(brokerId).
                    setBrokerEpoch(brokerEpoch).
                    setCurrentMetadataOffset(metadataOffset).
                    setWantFence(false).
                    setWantShutDown(wantShutDown),
                clusterControl.registerBrokerRecordOffset(brokerId).getAsLong());
            replay(result.records());
            if (result.response().inControlledShutdown()) {
                clusterControl.heartbeatManager().maybeUpdateControlledShutdownOffset(brokerId, nextOffset - 1);
            }
            return result.response();
        }

        void fenceStaleBrokers() {
            ControllerResult<Boolean> result;
            do {
                result = replicationControl.maybeFenceOneStaleBroker();
                replay(result.records());
            } while (result.response());
        }

        AlterPartitionResponseData handleAlterPartition(AlterPartitionRequestData request) {
            try {
                ControllerResult<AlterPartitionResponseData> result = replicationControl.alterPartition(
                    anonymousContextFor(ApiKeys.ALTER_PARTITION), request.duplicate());
                replay(result.records());
                return result.response();
            } catch (StaleBrokerEpochException e) {
                return new AlterPartitionResponseData().setErrorCode(Errors.STALE_BROKER_EPOCH.code());
            }
        }

        /** Null cancels. */
        Errors reassign(List<Integer> replicas) {
            ControllerResult<org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData> result =
                replicationControl.alterPartitionReassignments(new AlterPartitionReassignmentsRequestData().setTopics(
                    List.of(new ReassignableTopic().setName(TOPIC).setPartitions(List.of(
                        new ReassignablePartition().setPartitionIndex(0).setReplicas(replicas))))));
            replay(result.records());
            return Errors.forCode(result.response().responses().get(0).partitions().get(0).errorCode());
        }

        Errors electPreferredLeader() {
            List<ApiMessageAndVersion> records = new ArrayList<>();
            Errors error = replicationControl.electLeader(TOPIC, 0, ElectionType.PREFERRED, records).error();
            replay(records);
            return error;
        }

        boolean setMinInSyncReplicas(int value) {
            ControllerResult<?> result = configurationControl.incrementalAlterConfigs(
                Map.of(new ConfigResource(ConfigResource.Type.TOPIC, TOPIC), Map.of(
                    TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG, Map.entry(OpType.SET, Integer.toString(value)))),
                false, false);
            replay(result.records());
            return !result.records().isEmpty();
        }

        boolean isReassigning() {
            return partition().addingReplicas.length + partition().removingReplicas.length > 0;
        }

        int minInSyncReplicas() {
            return Integer.parseInt(
                configurationControl.getTopicConfig(TOPIC, TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG).value());
        }

        OptionalLong controlledShutdownOffset(int brokerId) {
            return clusterControl.registration(brokerId).inControlledShutdown() ?
                clusterControl.heartbeatManager().controlledShutdownOffset(brokerId) : OptionalLong.empty();
        }

        boolean isActive(int brokerId) {
            return !registration(brokerId).fenced() && !registration(brokerId).inControlledShutdown();
        }

        BrokerRegistration registration(int brokerId) {
            return clusterControl.brokerRegistrations().get(brokerId);
        }

        PartitionRegistration partition() {
            Uuid topicId = replicationControl.getTopicId(TOPIC);
            return topicId == null ? null : replicationControl.getPartition(topicId, 0);
        }

        String describe() {
            PartitionRegistration partition = partition();
            String fenced = clusterControl.brokerRegistrations().values().stream().
                filter(registration -> registration.fenced() || registration.inControlledShutdown()).
                map(registration -> registration.id() + (registration.fenced() ? "" : " (shutting down)")).
                collect(Collectors.joining(", "));
            String reassignment = partition.addingReplicas.length + partition.removingReplicas.length == 0 ? "" :
                String.format(", adding %s, removing %s", Arrays.toString(partition.addingReplicas),
                    Arrays.toString(partition.removingReplicas));
            return String.format("controller: leader %d, epoch %d, partition epoch %d, replicas %s%s, ISR %s, ELR %s%s",
                partition.leader, partition.leaderEpoch, partition.partitionEpoch, Arrays.toString(partition.replicas),
                reassignment, Arrays.toString(partition.isr), Arrays.toString(partition.elr),
                fenced.isEmpty() ? "" : ", fenced " + fenced);
        }
    }

    private static Uuid logDirId(int brokerId) {
        return new Uuid(1000, 1 + brokerId);
    }

    // The brokers

    /** A request of a fetcher thread, and its response. */
    private static final class FetchExchange {
        final SimulatedFetcherThread fetcher;
        final ReplicaFetch fetch;
        final FetchRequest request;
        final Process leader;
        final long sentMs;
        boolean isReceived;
        FetchResponse response;

        FetchExchange(SimulatedFetcherThread fetcher, ReplicaFetch fetch, Process leader, long sentMs) {
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
    private static final class AlterPartitionExchange {
        final ClientRequest request;
        final AlterPartitionRequestData data;
        final Process leader;
        final long sentMs;
        AlterPartitionResponseData response;

        AlterPartitionExchange(ClientRequest request, Process leader, long sentMs) {
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
            return newIsr() + " at partition epoch " + partition().partitionEpoch();
        }
    }

    /** RemoteLeaderEndPoint, whose requests the simulation sends. */
    private static final class SimulatedLeaderEndPoint extends RemoteLeaderEndPoint {
        private ReplicaFetch fetch;

        SimulatedLeaderEndPoint(SimulatedSender sender, Process process) {
            super("", sender, new FetchSessionHandler(new LogContext(), sender.brokerEndPoint().id()), process.config,
                process.replicaManager, QuotaFactory.UNBOUNDED_QUOTA, () -> process.metadataCache.metadataVersion(),
                () -> process.brokerEpoch);
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
    private static final class SimulatedFetcherThread extends ReplicaFetcherThread {
        private final SimulatedSender sender;
        private final SimulatedLeaderEndPoint endPoint;

        SimulatedFetcherThread(SimulatedSender sender, SimulatedLeaderEndPoint endPoint, Process process) {
            super("ReplicaFetcherThread-0-" + sender.brokerEndPoint().id(), endPoint, process.config,
                process.replicaManager.replicaFetcherManager().failedPartitions(), process.replicaManager,
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
    private record SimulatedConnection(BrokerEndPoint brokerEndPoint, Simulation simulation) { }

    private static final class SimulatedSender implements BlockingSend {
        private final SimulatedConnection connection;
        private FetchResponse fetchResponse;

        SimulatedSender(SimulatedConnection connection) {
            this.connection = connection;
        }

        @Override
        public BrokerEndPoint brokerEndPoint() {
            return connection.brokerEndPoint();
        }

        @Override
        public ClientResponse sendRequest(AbstractRequest.Builder<? extends AbstractRequest> builder) {
            AbstractRequest request = builder.build();
            AbstractResponse response = request instanceof ListOffsetsRequest listOffsets ?
                connection.simulation().listOffsets(brokerEndPoint().id(), listOffsets) : fetchResponse;
            return new ClientResponse(new RequestHeader(request.apiKey(), request.version(), "", 0), null, "", 0, 0,
                false, null, null, response);
        }

        @Override
        public void initiateClose() { }

        @Override
        public void close() { }
    }

    /** NodeToControllerRequestThread without a thread, on a MockClient. */
    private static final class SimulatedChannelManager implements NodeToControllerChannelManager {
        final MockClient client;
        private final MockTime time;
        private final NodeToControllerRequestThread thread;

        SimulatedChannelManager(KafkaConfig config, MockTime time) {
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

    /** What runs of a broker between its start and its end. */
    private static final class Process {
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
        final Simulation simulation;
        final KafkaConfig config;
        final MockScheduler scheduler;
        final MockTimer timer;
        final KRaftMetadataCache metadataCache;
        final LogManager logManager;
        final SimulatedChannelManager channel;
        final ReplicaManager replicaManager;
        final BrokerMetadataPublisher publisher;
        final long brokerEpoch;

        boolean isRunning = true;
        boolean wantShutDown;
        MetadataImage image = MetadataImage.EMPTY;
        int numBatches;
        boolean isLogRead;
        FetchExchange fetch;

        Process(int id, long brokerEpoch, Simulation simulation) throws IOException {
            this.id = id;
            this.brokerEpoch = brokerEpoch;
            this.simulation = simulation;
            MockTime time = simulation.time;
            config = CONFIGS.computeIfAbsent(id + "-" + simulation.minInSyncReplicas, key -> createConfig());
            QuotaManagers quotas = QUOTAS.computeIfAbsent(id, key ->
                QuotaFactory.instantiate(config, METRICS, time, "broker-" + id, ""));
            scheduler = new MockScheduler(time);
            timer = new MockTimer(time);
            metadataCache = new KRaftMetadataCache(id, () -> KRaftVersion.LATEST_PRODUCTION);
            LogDirFailureChannel logDirFailureChannel = new LogDirFailureChannel(1);
            logManager = createLogManager(time, logDirFailureChannel);
            channel = new SimulatedChannelManager(config, time);
            Function0<Object> brokerEpochSupplier = () -> brokerEpoch;
            AlterPartitionManager alterPartitionManager =
                new DefaultAlterPartitionManager(channel, scheduler, time, id, brokerEpochSupplier);
            replicaManager = new ReplicaManager(config, METRICS, time, scheduler, logManager, Option.empty(), quotas,
                metadataCache, logDirFailureChannel, alterPartitionManager, BROKER_TOPIC_STATS, purgatory("Produce"),
                this.<DelayedFetch>purgatory("Fetch"), idlePurgatory("DeleteRecords"), idlePurgatory("RemoteFetch"),
                idlePurgatory("RemoteListOffsets"), idlePurgatory("ShareFetch"), brokerEpochSupplier, Option.empty(),
                DirectoryEventHandler.NOOP, new DelayedActionQueue()) {
                @Override
                public ReplicaFetcherManager createReplicaFetcherManager(Metrics metrics,
                                                                         org.apache.kafka.common.utils.Time time,
                                                                         ReplicationQuotaManager quotaManager) {
                    return Process.this.createReplicaFetcherManager(this, quotaManager);
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
                new DelayedOperationPurgatory<T>(name, new MockTimer(simulation.time), 0, 1000, false, false)));
        }

        private KafkaConfig createConfig() {
            Properties props = new Properties();
            props.put("process.roles", "broker");
            props.put("node.id", Integer.toString(id));
            props.put("controller.quorum.voters", "3000@localhost:9093");
            props.put("controller.listener.names", "CONTROLLER");
            props.put("listeners", "PLAINTEXT://localhost:" + (9092 + id));
            props.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
            props.put("log.dirs", simulation.logDirs[id].toString());
            props.put("log.index.size.max.bytes", "65536");
            props.put("log.index.interval.bytes", "100"); // a read does not look through the whole log
            props.put("min.insync.replicas", Integer.toString(simulation.minInSyncReplicas));
            props.put("replica.fetch.backoff.ms", "0");
            props.put("replica.high.watermark.checkpoint.interval.ms", "30000");
            props.put("replica.fetch.max.bytes", "200"); // a few records in a response
            return new KafkaConfig(props, false);
        }

        private LogManager createLogManager(MockTime time, LogDirFailureChannel channel) throws IOException {
            Seq<File> logDirs = CollectionConverters.asScala(List.of(simulation.logDirs[id])).toSeq();
            Seq<File> offlineDirs = CollectionConverters.asScala(List.<File>of()).toSeq();
            LogConfig logConfig = LOG_CONFIGS.computeIfAbsent(config, key -> new LogConfig(key.extractLogConfigMap()));
            return new LogManager(logDirs, offlineDirs, metadataCache, logConfig,
                new CleanerConfig(false), 1, 1000L, 60000L, 900000L, 300000L, 900000,
                new ProducerStateManagerConfig(86400000, false), 600000, scheduler, BROKER_TOPIC_STATS, channel, time,
                false, 30000L, null);
        }

        private ReplicaFetcherManager createReplicaFetcherManager(
            ReplicaManager manager,
            ReplicationQuotaManager quota
        ) {
            return new ReplicaFetcherManager(config, manager, METRICS, simulation.time, quota,
                () -> metadataCache.metadataVersion(), () -> brokerEpoch) {
                @Override
                public ReplicaFetcherThread createFetcherThread(int fetcherId, BrokerEndPoint source) {
                    SimulatedSender sender = new SimulatedSender(new SimulatedConnection(source, simulation));
                    return new SimulatedFetcherThread(sender, new SimulatedLeaderEndPoint(sender, Process.this),
                        Process.this);
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

        private scala.collection.immutable.Map<ConfigType, kafka.server.ConfigHandler> topicConfigHandler(
            QuotaManagers quotas
        ) {
            return scala.collection.immutable.Map$.MODULE$.<ConfigType, kafka.server.ConfigHandler>from(
                CollectionConverters.asScala(Map.of(
                    ConfigType.TOPIC, new TopicConfigHandler(replicaManager, config, quotas))));
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

        SimulatedFetcherThread fetcher() {
            Option<ReplicaFetcherThread> fetcher = replicaManager.replicaFetcherManager().getFetcher(PARTITION);
            return fetcher.isEmpty() ? null : (SimulatedFetcherThread) fetcher.get();
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

        String describe() {
            if (numBatches == 0) {
                return "broker " + id + ": starts";
            }
            UnifiedLog log = log();
            String logState = log == null ? "no log" : String.format(
                "log %s, high watermark %d, min.insync.replicas %d", simulation.describeLog(id), log.highWatermark(),
                log.config().minInSyncReplicas);
            Partition partition = partition();
            if (partition == null) {
                return String.format("broker %d: no replica, %s", id, logState);
            }
            String role = partition.isLeader() ?
                "leads, ISR " + partition.partitionState().isr() + (partition.partitionState().isInflight() ?
                    ", waits for " + partition.partitionState().maximalIsr() : "") :
                partition.leaderReplicaIdOpt().isEmpty() ? "follows nobody" :
                    "follows " + partition.leaderReplicaIdOpt().get();
            return String.format("broker %d: %s in epoch %d, partition epoch %d, %s", id, role,
                partition.getLeaderEpoch(), partition.getPartitionEpoch(), logState);
        }
    }

    // The invariants

    /** A record: which one it is, and in which leader epoch it was appended. */
    private record Entry(int value, int leaderEpoch) {
        @Override
        public String toString() {
            return value + "@" + leaderEpoch;
        }
    }

    /** What was below the high watermark of a leader, and the leader epoch in which it was so first. */
    private record Commit(Entry entry, int leaderEpoch) { }

    private record Acknowledgement(long offset, int value, int minInSyncReplicas) { }

    private static final class Invariants {
        private final Simulation simulation;
        private final List<Commit> committed = new ArrayList<>();
        private final Set<Long> acknowledgedOffsets = new HashSet<>();
        private final List<Acknowledgement> acknowledgements = new ArrayList<>();
        /** How much of what was committed is in the log of each broker. */
        private final int[] numCommitted = new int[NUM_BROKERS];
        /** Those who were no replicas, and have not been in the ISR since. */
        private final Set<Integer> formerReplicas = new TreeSet<>();
        private final Process[] leaders = new Process[NUM_BROKERS];
        private final PartitionState[] partitionStates = new PartitionState[NUM_BROKERS];
        private final int[] leaderEpochs = new int[NUM_BROKERS];
        private final long[] highWatermarks = new long[NUM_BROKERS];
        /** When a leader had no reason last, or was not free, to take each follower out of the ISR. */
        private final long[][] shrinkableMs = new long[NUM_BROKERS][NUM_BROKERS];
        /** Of the brokers which have been shut down in order, and have not been started again. */
        private final long[] checkpointedHighWatermarks = new long[NUM_BROKERS];
        private PartitionRegistration partition;
        private boolean isChanged;

        Invariants(Simulation simulation) {
            this.simulation = simulation;
            IntStream.range(0, NUM_BROKERS).forEach(formerReplicas::add);
        }

        void acknowledge(long offset, int value, int minInSyncReplicas) {
            acknowledgements.add(new Acknowledgement(offset, value, minInSyncReplicas));
        }

        /** The log of a broker has changed from this offset on. */
        void onLogChange(int id, long offset) {
            numCommitted[id] = (int) Math.min(numCommitted[id], offset);
            isChanged = true;
        }

        void onKill(int id) {
            checkpointedHighWatermarks[id] = 0;
        }

        // The controller

        /** After each batch of the metadata log. */
        void checkPartition() {
            PartitionRegistration next = simulation.controller.partition();
            PartitionRegistration before = partition;
            if (next == null) {
                return;
            }
            Set<Integer> isr = toSet(next.isr);
            if (!ONLY_LOSS) {
                checkMembers(next, isr, toSet(next.elr), toSet(next.replicas));
            }
            if (next.equals(before)) {
                return;
            }
            if (!ONLY_LOSS && before != null) {
                checkChange(before, next, isr);
            }
            partition = next;
            isChanged = true;
            for (int id = 0; id < NUM_BROKERS; id++) {
                if (!Replicas.contains(next.replicas, id)) {
                    formerReplicas.add(id);
                } else if (isr.contains(id)) {
                    formerReplicas.remove(id);
                }
                if (isr.contains(id) && simulation.processes[id] != null) {
                    simulation.uncleanBrokers.remove(id);
                    simulation.brokersWithLoss.remove(id);
                }
            }
        }

        private void checkMembers(PartitionRegistration next, Set<Integer> isr, Set<Integer> elr,
                                  Set<Integer> replicas) {
            int minIsr = Math.min(simulation.controller.minInSyncReplicas(), replicas.size());
            check(replicas.containsAll(isr), "isr-in-replicas", "ISR %s, replicas %s", isr, replicas);
            check(replicas.containsAll(elr), "elr-in-replicas", "ELR %s, replicas %s", elr, replicas);
            check(isr.stream().noneMatch(elr::contains), "elr-not-in-isr", "ELR %s, ISR %s", elr, isr);
            check(elr.isEmpty() || isr.size() < minIsr, "elr-under-min-isr", "ELR %s, ISR %s", elr, isr);
            check(next.leader < 0 || isr.contains(next.leader), "leader-in-isr", "leader %d, ISR %s", next.leader, isr);
            for (int id : isr) {
                check(!simulation.controller.registration(id).fenced(), "isr-not-fenced", "%d of ISR %s", id, isr);
            }
        }

        private void checkChange(PartitionRegistration before, PartitionRegistration next, Set<Integer> isr) {
            check(next.partitionEpoch > before.partitionEpoch, "partition-epoch-grows", "%s, and then %s", before,
                next);
            check(next.leaderEpoch > before.leaderEpoch || next.leader == before.leader &&
                    Replicas.contains(Replicas.toList(next.replicas), before.replicas), "leader-epoch-grows",
                "%s, and then %s", before, next);
            for (int id : isr) {
                check(Replicas.contains(before.isr, id) ||
                        !simulation.controller.registration(id).inControlledShutdown(),
                    "isr-eligible", "Broker %d, which shuts down, comes into the ISR", id);
            }
            check(next.leader == before.leader || next.leader < 0 ||
                    !simulation.controller.registration(next.leader).inControlledShutdown(),
                "leader-eligible", "Broker %d, which shuts down, is elected", next.leader);
            check(next.leader == before.leader || !formerReplicas.contains(next.leader) ||
                    !Replicas.contains(before.elr, next.leader),
                "removed-replica-elected", "Broker %d, which was removed from the replicas and has not been in " +
                    "the ISR since, is elected from the ELR", next.leader);
            if (isr.size() < Math.min(simulation.controller.minInSyncReplicas(), next.replicas.length) &&
                    !Arrays.equals(before.isr, next.isr)) {
                for (int id : next.replicas) {
                    check(isr.contains(id) || Replicas.contains(next.elr, id) ||
                            simulation.uncleanBrokers.contains(id) ||
                            !Replicas.contains(before.isr, id) && !Replicas.contains(before.elr, id),
                        "elr-keeps-members", "Broker %d was in the ISR %s or the ELR %s, and now they are %s and %s",
                        id, Arrays.toString(before.isr), Arrays.toString(before.elr), isr, Arrays.toString(next.elr));
                }
            }
        }

        void checkAlterPartition(AlterPartitionExchange exchange, PartitionRegistration before) {
            AlterPartitionRequestData.PartitionData request = exchange.partition();
            check(exchange.data.brokerId() == before.leader && request.leaderEpoch() == before.leaderEpoch &&
                    request.partitionEpoch() == before.partitionEpoch,
                "alter-partition-from-leader", "AlterPartition (%s) of broker %d is accepted for %s",
                exchange, exchange.data.brokerId(), before);
            check(exchange.data.brokerEpoch() == simulation.controller.registration(exchange.data.brokerId()).epoch(),
                "alter-partition-of-this-incarnation", "AlterPartition (%s) of broker epoch %d is accepted",
                exchange, exchange.data.brokerEpoch());
            for (BrokerState member : request.newIsrWithEpochs()) {
                check(member.brokerEpoch() == -1 ||
                        member.brokerEpoch() == simulation.controller.registration(member.brokerId()).epoch(),
                    "isr-of-this-incarnation", "Broker %d comes into the ISR with broker epoch %d",
                    member.brokerId(), member.brokerEpoch());
            }
        }

        void checkRegistration(int id, PartitionRegistration before) {
            if (ONLY_LOSS || before == null) {
                return;
            }
            if (simulation.uncleanBrokers.contains(id)) {
                check(!Replicas.contains(partition.isr, id) && !Replicas.contains(partition.elr, id),
                    "unclean-shutdown-leaves-isr-and-elr", "Broker %d registers after it was killed: %s", id,
                    partition);
            } else {
                check(!Replicas.contains(before.elr, id) || Replicas.contains(partition.elr, id),
                    "clean-shutdown-stays-in-elr", "Broker %d registers after it was shut down: %s, and before %s", id,
                    partition, before);
            }
        }

        void checkUnfencing(Process process) {
            check(ONLY_LOSS || process.metadataOffset() >= process.brokerEpoch, "unfenced-broker-knows-registration",
                "Broker %d is unfenced at metadata offset %d, and its broker epoch is %d", process.id,
                process.metadataOffset(), process.brokerEpoch);
        }

        /** A broker which was in controlled shutdown shuts down. */
        void checkShutdown(Process process, OptionalLong controlledShutdownOffset) {
            checkpointedHighWatermarks[process.id] = process.log() == null ? 0 : process.log().highWatermark();
            for (Process other : simulation.processes) {
                check(ONLY_LOSS || controlledShutdownOffset.isEmpty() || other == null || other == process ||
                        !simulation.controller.isActive(other.id) ||
                        other.metadataOffset() >= controlledShutdownOffset.getAsLong(),
                    "shutdown-known-by-active-brokers", "Broker %d shuts down, which broker %d does not know",
                    process.id, other == null ? -1 : other.id);
            }
        }

        // The brokers

        /** After each event. */
        void check() {
            for (int id = 0; id < NUM_BROKERS; id++) {
                simulation.updateLog(id);
            }
            for (Process process : simulation.processes) {
                if (process != null && process.log() != null) {
                    checkLeader(process, process.log());
                }
            }
            for (int id = 0; id < NUM_BROKERS; id++) {
                List<Entry> entries = simulation.logs.get(id);
                int end = Math.min(entries.size(), committed.size());
                while (numCommitted[id] < end &&
                        entries.get(numCommitted[id]).equals(committed.get(numCommitted[id]).entry())) {
                    numCommitted[id]++;
                }
            }
            for (Process process : simulation.processes) {
                if (process != null && process.log() != null && !ONLY_LOSS) {
                    checkHighWatermark(process, process.log());
                    if (process.isLeader() && process.partition().getLeaderEpoch() == partition.leaderEpoch) {
                        checkMaximalIsr(process.id, process.partition().partitionState().maximalIsr());
                        checkPositions(process, process.partition());
                    }
                }
            }
            acknowledgements.forEach(this::checkAcknowledgement);
            acknowledgements.clear();
            if (isChanged) {
                isChanged = false;
                checkCommitted();
            }
        }

        private void checkLeader(Process process, UnifiedLog log) {
            int id = process.id;
            Partition leader = process.partition();
            if (leader == null || !leader.isLeader()) {
                leaders[id] = null;
                return;
            }
            int leaderEpoch = leader.getLeaderEpoch();
            long highWatermark = log.highWatermark();
            check(leaders[id] != process || leaderEpochs[id] != leaderEpoch || highWatermarks[id] <= highWatermark,
                "high-watermark-grows", "from %d to %d on leader %d", highWatermarks[id], highWatermark, id);
            List<Entry> entries = simulation.logs.get(id);
            check(highWatermark <= entries.size(), "high-watermark-in-log", "%d on leader %d, whose log ends at %d",
                highWatermark, id, entries.size());
            if (leaders[id] != process || leaderEpochs[id] != leaderEpoch) {
                isChanged = true;
                Arrays.fill(shrinkableMs[id], simulation.time.milliseconds());
            }
            if (!ONLY_LOSS) {
                checkLag(process, leader, log);
            }
            leaders[id] = process;
            leaderEpochs[id] = leaderEpoch;
            highWatermarks[id] = highWatermark;
            while (committed.size() < highWatermark) {
                committed.add(new Commit(entries.get(committed.size()), leaderEpoch));
                isChanged = true;
            }
            if (partitionStates[id] != leader.partitionState()) {
                partitionStates[id] = leader.partitionState();
                if (partitionStates[id] instanceof PendingExpandIsr expansion && !ONLY_LOSS) {
                    checkExpansion(process, expansion.newInSyncReplicaId());
                }
            }
        }

        /** A leader looks for slow replicas each half of replica.lag.time.max.ms. */
        private void checkLag(Process process, Partition leader, UnifiedLog log) {
            long nowMs = simulation.time.milliseconds();
            long maxLagMs = process.config.replicaLagTimeMaxMs() * 3 / 2 + HEARTBEAT_INTERVAL_MS;
            for (int id : leader.partitionState().maximalIsr()) {
                ReplicaState state = id == process.id ? null : leader.getReplica(id).get().stateSnapshot();
                if (state == null || state.logEndOffset() >= log.logEndOffset() ||
                        leader.partitionState().isInflight() || !process.channel.isIdle()) {
                    shrinkableMs[process.id][id] = nowMs;
                }
                check(nowMs - shrinkableMs[process.id][id] <= maxLagMs ||
                        state.isCaughtUp(log.logEndOffset(), nowMs, maxLagMs), "slow-replica-leaves-isr",
                    "Leader %d still has broker %d in the ISR", process.id, id);
            }
        }

        /** A leader proposes a replica for the ISR. */
        private void checkExpansion(Process leader, int id) {
            BrokerRegistration registration = leader.image.cluster().broker(id);
            check(registration != null && !registration.fenced() && !registration.inControlledShutdown(),
                "isr-expansion-of-active-broker", "Broker %d proposes broker %d, as it knows it: %s", leader.id, id,
                registration);
            Optional<Long> brokerEpoch = leader.partition().getReplica(id).get().stateSnapshot().brokerEpoch();
            check(brokerEpoch.equals(Optional.of(registration.epoch())), "isr-expansion-of-this-incarnation",
                "Broker %d proposes broker %d with broker epoch %s, and its own is %d", leader.id, id, brokerEpoch,
                registration.epoch());
            check(leaderEpochs[leader.id] != partition.leaderEpoch || simulation.brokersWithLoss.contains(id) ||
                    simulation.logs.get(id).size() >= highWatermarks[leader.id],
                "isr-expansion-in-sync",
                "Broker %d proposes broker %d, whose log ends at %d, below the high watermark %d",
                leader.id, id, simulation.logs.get(id).size(), highWatermarks[leader.id]);
        }

        /** The leader waits for whoever is in the ISR, or comes into it if a request arrives that is on its way. */
        private void checkMaximalIsr(int leader, Set<Integer> maximalIsr) {
            check(maximalIsr.containsAll(Replicas.toList(partition.isr)), "maximal-isr",
                "Leader %d waits for %s, and the ISR is %s", leader, maximalIsr, Arrays.toString(partition.isr));
            for (AlterPartitionExchange exchange : simulation.alterPartitions) {
                if (exchange.mayBeAccepted(partition, simulation.time.milliseconds())) {
                    check(maximalIsr.containsAll(exchange.newIsr()), "maximal-isr",
                        "Leader %d waits for %s, and AlterPartition (%s) is on its way", leader, maximalIsr, exchange);
                }
            }
        }

        /** The leader knows of no more records of an in-sync replica than there are in its log. */
        private void checkPositions(Process leader, Partition leaderPartition) {
            for (int id : leaderPartition.partitionState().isr()) {
                Process process = simulation.processes[id];
                Partition replica = process == null || process == leader ? null : process.partition();
                if (replica != null && replica.getLeaderEpoch() == leaderPartition.getLeaderEpoch()) {
                    ReplicaState state = leaderPartition.getReplica(id).get().stateSnapshot();
                    check(!state.brokerEpoch().equals(Optional.of(process.brokerEpoch)) ||
                            state.logEndOffset() <= process.log().logEndOffset(),
                        "position-in-log", "Leader %d has position %d of broker %d, whose log ends at %d", leader.id,
                        state.logEndOffset(), id, process.log().logEndOffset());
                }
            }
        }

        private void checkHighWatermark(Process process, UnifiedLog log) {
            long highWatermark = log.highWatermark();
            check(highWatermark <= committed.size(), "high-watermark-committed",
                "%d on broker %d, and %d on leaders", highWatermark, process.id, committed.size());
            if (highWatermark > numCommitted[process.id]) {
                check(false, "logs-agree", "Broker %d has %s, with the high watermark %d, and %s was committed",
                    process.id, simulation.describeLog(process.id), highWatermark,
                    committed.get(numCommitted[process.id]));
            }
        }

        /** A broker has started, and read its log. */
        void checkRestart(int id, UnifiedLog log, List<Entry> before, List<Entry> entries) {
            check(entries.equals(before), "log-survives-restart", "Broker %d had %s, and has %s", id, before, entries);
            check(ONLY_LOSS || log.highWatermark() >= checkpointedHighWatermarks[id],
                "high-watermark-survives-shutdown", "%d on broker %d, which had %d when it shut down",
                log.highWatermark(), id, checkpointedHighWatermarks[id]);
        }

        /** The epoch cache of a broker whose log has changed. */
        void checkLeaderEpochs(int id, UnifiedLog log, List<Entry> entries) {
            if (!ONLY_LOSS && !entries.isEmpty()) {
                int epoch = entries.get(entries.size() - 1).leaderEpoch();
                OptionalInt cached = log.leaderEpochCache().epochForOffset(entries.size() - 1);
                check(cached.isPresent() && cached.getAsInt() == epoch, "leader-epoch-of-last-record",
                    "%d at broker %d, and %s in its leader epoch cache", epoch, id, cached);
            }
        }

        private void checkAcknowledgement(Acknowledgement acknowledgement) {
            long offset = acknowledgement.offset();
            acknowledgedOffsets.add(offset);
            check(offset < committed.size() && committed.get((int) offset).entry().value() == acknowledgement.value(),
                "acknowledged-record-committed", "Record %d at offset %d was acknowledged", acknowledgement.value(),
                offset);
            long copies = IntStream.range(0, NUM_BROKERS).filter(id -> numCommitted[id] > offset ||
                simulation.brokersWithLoss.contains(id)).count();
            check(ONLY_LOSS || copies >= Math.min(acknowledgement.minInSyncReplicas(), partition.replicas.length),
                "acknowledged-record-on-min-isr", "Record %d was acknowledged, and is on %d brokers",
                acknowledgement.value(), copies);
        }

        private void checkCommitted() {
            for (Process process : simulation.processes) {
                if (process != null && process.isLeader()) {
                    checkLeaderHasCommitted(process.id, process.partition().getLeaderEpoch());
                }
            }
            if (ONLY_LOSS || partition == null) {
                return;
            }
            for (int id = 0; id < NUM_BROKERS; id++) {
                if (Replicas.contains(partition.isr, id) || Replicas.contains(partition.elr, id)) {
                    check(simulation.brokersWithLoss.contains(id) || numCommitted[id] == committed.size(),
                        "committed-record-in-isr-and-elr", "What is at offset %d was %s, and is not in the log of " +
                            "broker %d, which is in the ISR or the ELR", numCommitted[id],
                        committedState(numCommitted[id]), id);
                }
            }
        }

        private void checkLeaderHasCommitted(int id, int leaderEpoch) {
            for (int offset = numCommitted[id]; offset < committed.size(); offset++) {
                if (committed.get(offset).leaderEpoch() <= leaderEpoch &&
                        (!ONLY_LOSS || acknowledgedOffsets.contains((long) offset))) {
                    check(false, "committed-record-lost", "What is at offset %d was %s, and is not in the log of " +
                        "broker %d, the leader of epoch %d", offset, committedState(offset), id, leaderEpoch);
                }
            }
        }

        private String committedState(long offset) {
            return acknowledgedOffsets.contains(offset) ? "acknowledged" : "committed";
        }

        private static void check(boolean holds, String invariant, String message, Object... arguments) {
            if (!holds) {
                throw new Violation(invariant, String.format(message, arguments), null);
            }
        }

        private static Set<Integer> toSet(int[] ids) {
            return new TreeSet<>(Replicas.toList(ids));
        }
    }

    // The simulation

    private static final class Simulation implements AutoCloseable {
        static final List<List<Integer>> ASSIGNMENTS = assignments();
        private static final File ROOT = createRoot();

        final MockTime time = new MockTime(START_MS, 0);
        final File[] logDirs = new File[NUM_BROKERS];
        final Process[] processes = new Process[NUM_BROKERS];
        /** What is in the logs, whether or not a broker runs. */
        final List<List<Entry>> logs = new ArrayList<>();
        /** Who has been killed and was not in the ISR since, and who of them has lost a part of the log by it. */
        final Set<Integer> uncleanBrokers = new TreeSet<>();
        final Set<Integer> brokersWithLoss = new TreeSet<>();
        final List<String> story = new ArrayList<>();
        final int minInSyncReplicas;
        final Controller controller;
        final Invariants invariants;
        int numSteps;

        private final Random random;
        private boolean isStoryTold;
        private boolean isSleeping;
        private final List<String> nextLines = new ArrayList<>();
        private final Map<String, String> lastStates = new TreeMap<>();
        private final boolean[][] heldLinks = new boolean[Link.values().length][NUM_BROKERS];
        private final List<FetchExchange> staleFetches = new ArrayList<>();
        private final List<AlterPartitionExchange> alterPartitions = new ArrayList<>();
        private boolean isPowerLossAllowed;
        /** A reassignment in place of another one may never complete. */
        private boolean isReassignmentReplaced;
        private int nextValue;
        private int lastAcknowledgedValue;
        private long nextIncarnation;

        Simulation(long seed, boolean isStoryTold) throws Exception {
            this(new Random(seed), isStoryTold);
        }

        private Simulation(Random random, boolean isStoryTold) throws Exception {
            this(random, random.nextInt(4) == 0 ? 1 : 2, randomAssignment(random), isStoryTold);
        }

        Simulation(Random random, int minInSyncReplicas, List<Integer> replicas, boolean isStoryTold) throws Exception {
            this.random = random;
            this.minInSyncReplicas = minInSyncReplicas;
            isPowerLossAllowed = minInSyncReplicas > 1;
            controller = new Controller(minInSyncReplicas, time, this::onMetadataChange);
            invariants = new Invariants(this);
            for (int id = 0; id < NUM_BROKERS; id++) {
                logs.add(new ArrayList<>());
                logDirs[id] = new File(ROOT, Integer.toString(id));
                Utils.delete(logDirs[id]);
                Files.createDirectories(logDirs[id].toPath());
                Files.writeString(logDirs[id].toPath().resolve("meta.properties"), String.format(
                    "version=1%ncluster.id=%s%nnode.id=%d%ndirectory.id=%s%n", "cluster", id, logDirId(id)));
                startProcess(id);
            }
            flow();
            for (Process process : processes) {
                heartbeat(process);
            }
            controller.createTestTopic(TOPIC, replicas.stream().mapToInt(Integer::intValue).toArray());
            flow();
            this.isStoryTold = isStoryTold;
            tell("Start");
        }

        private static List<Integer> randomAssignment(Random random) {
            List<Integer> replicas;
            do {
                replicas = ASSIGNMENTS.get(random.nextInt(ASSIGNMENTS.size()));
            } while (replicas.size() < 2);
            return replicas;
        }

        private static List<List<Integer>> assignments() {
            List<List<Integer>> all = new ArrayList<>();
            for (int first = 0; first < NUM_BROKERS; first++) {
                all.add(List.of(first));
                for (int second = 0; second < NUM_BROKERS; second++) {
                    for (int third = 0; third < NUM_BROKERS && second != first; third++) {
                        if (third == second) {
                            all.add(List.of(first, second));
                        } else if (third != first) {
                            all.add(List.of(first, second, third));
                        }
                    }
                }
            }
            return all;
        }

        private static File createRoot() {
            try {
                Path memory = Path.of("/dev/shm"); // where it is there, nothing waits for a disk
                Path root = Files.isWritable(memory) ? Files.createTempDirectory(memory, "kafka-simulation") :
                    Files.createTempDirectory("kafka-simulation");
                Runtime.getRuntime().addShutdownHook(new Thread(() ->
                    Utils.closeQuietly(() -> Utils.delete(root.toFile()), "log directories")));
                return root.toFile();
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        /**
         * Random events, in parts each of which begins with a healthy cluster, and draws which faults there are and how
         * often.
         */
        Optional<Violation> runRandomly(List<Event> events) throws Exception {
            Optional<Violation> violation = Optional.empty();
            while (violation.isEmpty() && events.size() < EVENTS_PER_RUN) {
                violation = runPart(events);
                if (violation.isEmpty()) {
                    violation = step(new Event(EventType.RECOVER, 0, 0), events);
                }
                if (violation.isEmpty() && random.nextInt(4) == 0) {
                    EventType change = random.nextInt(3) == 0 ? EventType.REASSIGN : EventType.MIN_ISR;
                    violation = step(new Event(change, 0, random.nextInt(1000)), events);
                    if (violation.isEmpty()) {
                        violation = step(new Event(EventType.RECOVER, 0, 0), events);
                    }
                }
            }
            return violation;
        }

        /**
         * Of what is on its way, that goes first whose link has the highest priority. From time to time a link gets
         * another one, and in some parts all of them often do. In every other part the metadata of one broker are slow.
         */
        private Optional<Violation> runPart(List<Event> events) throws Exception {
            int[] weights = randomWeights();
            List<Event> deliveries = randomDeliveries();
            int share = 4 + random.nextInt(5);
            int disorder = random.nextInt(4);
            int end = events.size() + 20 + random.nextInt(80);
            Optional<Violation> violation = Optional.empty();
            if (random.nextBoolean()) {
                int id = random.nextBoolean() ? controller.partition().leader : randomBroker();
                violation = step(new Event(EventType.HOLD, id, Link.METADATA.ordinal()), events);
            }
            for (int i = 0; i < 10_000 && events.size() < end && violation.isEmpty(); i++) {
                if (random.nextInt(15) == 0) {
                    deliveries.add(random.nextInt(deliveries.size()),
                        deliveries.remove(random.nextInt(deliveries.size())));
                } else if (random.nextInt(6) < disorder) {
                    Collections.shuffle(deliveries, random);
                }
                int number = random.nextInt(1000);
                if (random.nextInt(10) < share) {
                    int before = events.size();
                    for (int j = 0; j < deliveries.size() && events.size() == before && violation.isEmpty(); j++) {
                        Event delivery = deliveries.get(j);
                        violation = step(new Event(delivery.type(), delivery.broker(), number), events);
                    }
                } else {
                    violation = step(new Event(randomType(weights), randomBroker(), number), events);
                }
            }
            return violation;
        }

        private int[] randomWeights() {
            int faults = 1 + random.nextInt(4);
            return Arrays.stream(EventType.values()).mapToInt(type -> type.isFault ?
                (random.nextInt(10) < faults ? type.weight * (1 + random.nextInt(3)) : 0) :
                type.weight * (1 + random.nextInt(2))).toArray();
        }

        private List<Event> randomDeliveries() {
            List<Event> deliveries = new ArrayList<>();
            for (int id = 0; id < NUM_BROKERS; id++) {
                deliveries.add(new Event(EventType.FETCH, id, 0));
                deliveries.add(new Event(EventType.METADATA, id, 0));
                deliveries.add(new Event(EventType.ALTER_PARTITION, id, 0));
            }
            Collections.shuffle(deliveries, random);
            return deliveries;
        }

        /** The leader, a replica, or any. */
        private int randomBroker() {
            PartitionRegistration partition = controller.partition();
            int choice = random.nextInt(8);
            return choice < 2 && partition.leader >= 0 ? partition.leader :
                choice == 2 ? random.nextInt(NUM_BROKERS) :
                partition.replicas[random.nextInt(partition.replicas.length)];
        }

        private EventType randomType(int[] weights) {
            int at = random.nextInt(Arrays.stream(weights).sum());
            int type = 0;
            while (at >= weights[type]) {
                at -= weights[type++];
            }
            return EventType.values()[type];
        }

        Optional<Violation> replay(List<Event> events) throws Exception {
            List<Event> done = new ArrayList<>();
            for (Event event : events) {
                Optional<Violation> violation = step(event, done);
                if (violation.isPresent()) {
                    return violation;
                }
            }
            return Optional.empty();
        }

        private Optional<Violation> step(Event event, List<Event> events) throws Exception {
            try {
                if (handle(event)) {
                    events.add(event);
                }
                return Optional.empty();
            } catch (Violation violation) {
                return Optional.of(end(event, events, violation));
            } catch (RuntimeException e) {
                return Optional.of(end(event, events, new Violation("no-exception", e.toString(), e)));
            }
        }

        private Violation end(Event event, List<Event> events, Violation violation) {
            events.add(event);
            isSleeping = false;
            tell(event.type().toString());
            tellLine("VIOLATION %s", violation.getMessage());
            story.addAll(nextLines);
            return violation;
        }

        /** False if the event is not possible now. */
        private boolean handle(Event event) throws Exception {
            int id = event.broker();
            int number = event.number();
            Process process = processes[id];
            boolean isReady = process != null && process.numBatches > 0;
            switch (event.type()) {
                case PRODUCE:
                    return isReady && process.isLeader() && produce(process, 1 + number % 3);
                case FETCH:
                    return isReady && moveFetch(process);
                case METADATA:
                    return process != null && isFlowing(Link.METADATA, id) &&
                        publish(process,
                            number % 3 == 1 && process.numBatches > 0 ? 1 + number % 2 : Integer.MAX_VALUE);
                case ALTER_PARTITION:
                    return moveAlterPartition(id);
                case HEARTBEAT: // of a broker which has no session, or wants to end it
                    return process != null && isFlowing(Link.HEARTBEAT, id) &&
                        (!controller.isActive(id) || process.wantShutDown) && heartbeat(process);
                case TICK:
                    pass(1 + number % 600, -1);
                    return after("%d ms later", 1 + number % 600);
                case SLEEP:
                    return sleep(1 + number % 2, -1, true);
                case LAG: // more than replica.lag.time.max.ms
                    return sleep(4 + number % 3, -1, number % 3 == 0);
                case LOSE_SESSION: // more than broker.session.timeout.ms
                    return isReady && sleep(2 + number / 3 % 4, id, number % 3 == 0);
                case HOLD:
                    Link link = Link.values()[number % Link.values().length];
                    return isFlowing(link, id) && (heldLinks[link.ordinal()][id] = true) &&
                        after("%s of broker %d: nothing gets through", link, id);
                case RELEASE:
                    return release(number);
                case DISCONNECT:
                    return isReady && disconnect(process, number);
                case STALE_FETCH:
                    return receiveStaleFetch(number);
                case STALE_ALTER_PARTITION:
                    return receiveStaleAlterPartition(number);
                case RECOVER:
                    return recover();
                case ELECTION:
                    return elect(id) && after("Broker %d becomes the preferred leader, and is elected", id);
                case REASSIGN:
                    return brokersWithLoss.isEmpty() && reassign(ASSIGNMENTS.get(number % ASSIGNMENTS.size()));
                case CANCEL_REASSIGNMENT:
                    return brokersWithLoss.isEmpty() && controller.reassign(null) == Errors.NONE &&
                        after("The reassignment is cancelled");
                case MIN_ISR: // with an empty ISR it may leave a partition which nobody can lead
                    isPowerLossAllowed &= number % 2 != 0;
                    return brokersWithLoss.isEmpty() && controller.partition().isr.length > 0 &&
                        controller.setMinInSyncReplicas(1 + number % 2) &&
                        after("min.insync.replicas becomes %d", 1 + number % 2);
                case SHUTDOWN:
                    return isReady && !process.wantShutDown && (process.wantShutDown = true) && heartbeat(process);
                case KILL:
                    return process != null && brokersWithLoss.isEmpty() && kill(process);
                case POWER_LOSS:
                    return isReady && isPowerLossAllowed && uncleanBrokers.isEmpty() && !isOnlyInSync(id) &&
                        losePower(process, number);
                case START:
                    return process == null && start(id);
                default:
                    throw new IllegalStateException(event.toString());
            }
        }

        /** A reassignment which changes the order of the replicas only, and a preferred leader election. */
        private boolean elect(int id) {
            PartitionRegistration partition = controller.partition();
            if (partition.leader == id || !Replicas.contains(partition.isr, id) ||
                    controller.isReassigning()) {
                return false;
            }
            List<Integer> replicas = new ArrayList<>(Replicas.toList(partition.replicas));
            replicas.remove((Integer) id);
            replicas.add(0, id);
            return controller.reassign(replicas) == Errors.NONE && controller.electPreferredLeader() == Errors.NONE;
        }

        private boolean reassign(List<Integer> target) throws Exception {
            boolean isReassigning = controller.isReassigning();
            if (controller.reassign(target) != Errors.NONE) {
                return false;
            }
            isReassignmentReplaced |= isReassigning;
            isPowerLossAllowed &= target.size() > 1;
            return after("Reassignment to %s", target);
        }

        private boolean isFlowing(Link link, int id) {
            return !heldLinks[link.ordinal()][id];
        }

        /** One of those that are held back. */
        private boolean release(int number) throws Exception {
            int at = number % (heldLinks.length * NUM_BROKERS);
            for (int i = 0; i < heldLinks.length * NUM_BROKERS; i++, at = (at + 1) % (heldLinks.length * NUM_BROKERS)) {
                Link link = Link.values()[at / NUM_BROKERS];
                int id = at % NUM_BROKERS;
                if (!isFlowing(link, id)) {
                    heldLinks[link.ordinal()][id] = false;
                    return after("%s of broker %d: gets through again", link, id);
                }
            }
            return false;
        }

        /** After each step: what the brokers do by themselves, the invariants, and the story. */
        private boolean after(String step, Object... arguments) throws Exception {
            numSteps++;
            for (Process process : processes) {
                if (process != null) {
                    pump(process);
                }
            }
            invariants.check();
            if (isStoryTold) {
                tell(String.format(step, arguments));
            }
            return true;
        }

        /** Within a sleep only what changes a state is told. */
        private void tell(String step) {
            if (isStoryTold) {
                int size = story.size();
                tellStates();
                if (!isSleeping || story.size() > size || !nextLines.isEmpty()) {
                    story.add(size, String.format("[%9.3f s] %s", (time.milliseconds() - START_MS) / 1000.0, step));
                    story.addAll(size + 1, nextLines);
                    nextLines.clear();
                }
            }
        }

        private void tellLine(String line, Object... arguments) {
            if (isStoryTold) {
                nextLines.add("              " + String.format(line, arguments));
            }
        }

        String story() {
            return story.stream().collect(Collectors.joining(System.lineSeparator()));
        }

        private void tellStates() {
            Map<String, String> states = new TreeMap<>();
            states.put("controller", controller.describe());
            for (int id = 0; id < NUM_BROKERS; id++) {
                String state = processes[id] == null ? "broker " + id + ": does not run" : processes[id].describe();
                states.put("broker " + id, state);
            }
            states.forEach((name, state) -> {
                if (!state.equals(lastStates.put(name, state))) {
                    story.add("              " + state);
                }
            });
        }

        // What brokers do

        private boolean produce(Process process, int numRecords) throws Exception {
            int first = nextValue;
            for (int i = 0; i < numRecords; i++) {
                send(process, nextValue++);
            }
            process.replicaManager.tryCompleteActions();
            return after("Records %d to %d are sent to broker %d", first, nextValue - 1, process.id);
        }

        private void send(Process process, int value) {
            SimpleRecord record = new SimpleRecord(time.milliseconds(), null, ByteBuffer.allocate(4).putInt(0, value));
            TopicIdPartition partition = new TopicIdPartition(process.metadataCache.getTopicId(TOPIC), PARTITION);
            process.replicaManager.appendRecords(60_000L, (short) -1, false, AppendOrigin.CLIENT,
                CollectionConverters.asScala(Map.of(partition, MemoryRecords.withRecords(Compression.NONE, record))),
                responses -> {
                    PartitionResponse response = responses.values().iterator().next();
                    if (response.error == Errors.NONE) {
                        invariants.acknowledge(response.baseOffset, value, Math.min(
                            process.log().config().minInSyncReplicas,
                            process.partition().assignmentState().replicationFactor()));
                        lastAcknowledgedValue = value;
                        tellLine("record %d is acknowledged by broker %d", value, process.id);
                    }
                    return BoxedUnit.UNIT;
                },
                stats -> BoxedUnit.UNIT, RequestLocal.noCaching(), CollectionConverters.asScala(Map.of()),
                TransactionVersion.TV_UNKNOWN);
        }

        /** Sends the next fetch, and requests to the controller. */
        private void pump(Process process) {
            if (!process.channel.isIdle()) {
                process.channel.poll();
            }
            for (ClientRequest request : process.channel.client.requests()) {
                if (alterPartitions.stream().noneMatch(exchange -> exchange.request == request)) {
                    AlterPartitionExchange exchange = new AlterPartitionExchange(request, process, time.milliseconds());
                    alterPartitions.add(exchange);
                    tellLine("broker %d sends AlterPartition: ISR %s", process.id, exchange);
                }
            }
            SimulatedFetcherThread fetcher = process.numBatches == 0 ? null : process.fetcher();
            if (process.fetch != null && (process.fetch.fetcher != fetcher || !process.fetch.leader.isRunning)) {
                abandonFetch(process);
            }
            if (process.fetch == null && fetcher != null) {
                Process leader = processes[fetcher.leader().brokerEndPoint().id()];
                ReplicaFetch fetch = leader == null || leader.numBatches == 0 ? null : fetcher.nextFetch();
                if (fetch != null) {
                    process.fetch = new FetchExchange(fetcher, fetch, leader, time.milliseconds());
                }
            }
        }

        private void abandonFetch(Process process) {
            if (!process.fetch.isReceived) {
                staleFetches.add(process.fetch);
            }
            process.fetch = null;
        }

        /** The request reaches the leader, or the response the follower. */
        private boolean moveFetch(Process process) throws Exception {
            FetchExchange fetch = process.fetch;
            if (fetch == null || fetch.isReceived && fetch.response == null ||
                    !isFlowing(fetch.isReceived ? Link.FETCH_RESPONSE : Link.FETCH, process.id)) {
                return false;
            }
            if (!fetch.isReceived) {
                receiveFetch(fetch);
                return after("A fetch of broker %d %s reaches broker %d", process.id, fetch, fetch.leader.id);
            }
            process.fetch = null;
            fetch.fetcher.handleResponse(fetch);
            return after("The response to a fetch reaches broker %d", process.id);
        }

        private boolean receiveStaleFetch(int number) throws Exception {
            staleFetches.removeIf(fetch ->
                !fetch.leader.isRunning || time.milliseconds() - fetch.sentMs > STALE_REQUEST_MS);
            if (staleFetches.isEmpty()) {
                return false;
            }
            FetchExchange fetch = staleFetches.remove(number % staleFetches.size());
            receiveFetch(fetch);
            return after("A fetch %s on a closed connection reaches broker %d", fetch, fetch.leader.id);
        }

        private void receiveFetch(FetchExchange fetch) {
            fetch.isReceived = true;
            FetchRequest request = fetch.request;
            FetchParams params = new FetchParams(request.replicaId(), request.replicaEpoch(), request.maxWait(),
                request.minBytes(), request.maxBytes(), FetchIsolation.of(request), Optional.empty());
            List<Tuple2<TopicIdPartition, FetchRequest.PartitionData>> partitions = new ArrayList<>();
            request.fetchData(fetch.leader.metadataCache.topicIdsToNames()).forEach((partition, data) ->
                partitions.add(new Tuple2<>(partition, data)));
            if (partitions.get(0)._1().topic() == null) {
                fetch.response = response(new TopicIdPartition(partitions.get(0)._1().topicId(), PARTITION),
                    FetchResponse.partitionResponse(0, Errors.UNKNOWN_TOPIC_ID));
                return;
            }
            fetch.leader.replicaManager.fetchMessages(params, CollectionConverters.asScala(partitions).toSeq(),
                QuotaFactory.UNBOUNDED_QUOTA, results -> {
                    fetch.response = response(results.head()._1(), partitionData(results.head()._2()));
                    return BoxedUnit.UNIT;
                });
            fetch.leader.replicaManager.tryCompleteActions();
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

        private static MemoryRecords toMemoryRecords(Records records) {
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

        ListOffsetsResponse listOffsets(int leaderId, ListOffsetsRequest request) {
            Process leader = processes[leaderId];
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

        private boolean publish(Process process, int maxBatches) throws Exception {
            int from = process.numBatches;
            int to = (int) Math.min(controller.batches.size(), (long) from + maxBatches);
            if (from == to) {
                return false;
            }
            process.publish(controller.batches.subList(from, to), time.milliseconds());
            return after("Broker %d gets metadata, %d batches in one delta", process.id, to - from);
        }

        private void onMetadataChange() {
            invariants.checkPartition();
        }

        /** A request reaches the controller, or a response the leader. */
        private boolean moveAlterPartition(int id) throws Exception {
            for (AlterPartitionExchange exchange : alterPartitions) {
                if (exchange.leader.id == id && exchange.isConnected()) {
                    Link link = exchange.response == null ? Link.ALTER_PARTITION : Link.ALTER_PARTITION_RESPONSE;
                    return isFlowing(link, id) && moveAlterPartition(exchange);
                }
            }
            return false;
        }

        private boolean receiveStaleAlterPartition(int number) throws Exception {
            alterPartitions.removeIf(exchange -> !exchange.isConnected() && exchange.response != null ||
                exchange.isExpired(time.milliseconds()));
            List<AlterPartitionExchange> exchanges = alterPartitions.stream().
                filter(exchange -> !exchange.isConnected()).
                toList();
            return !exchanges.isEmpty() && moveAlterPartition(exchanges.get(number % exchanges.size()));
        }

        private boolean moveAlterPartition(AlterPartitionExchange exchange) throws Exception {
            if (exchange.response == null) {
                PartitionRegistration before = controller.partition();
                exchange.response = controller.handleAlterPartition(exchange.data);
                if (isAccepted(exchange.response) && !ONLY_LOSS) {
                    invariants.checkAlterPartition(exchange, before);
                }
                return after("AlterPartition (%s) of broker %d%s reaches the controller: %s", exchange,
                    exchange.leader.id, exchange.isConnected() ? "" : " on a closed connection",
                    describe(exchange.response));
            }
            exchange.leader.channel.client.respondToRequest(exchange.request,
                new AlterPartitionResponse(exchange.response));
            alterPartitions.remove(exchange);
            return after("The response to AlterPartition reaches broker %d: %s", exchange.leader.id,
                describe(exchange.response));
        }

        private static boolean isAccepted(AlterPartitionResponseData response) {
            return response.errorCode() == Errors.NONE.code() &&
                response.topics().get(0).partitions().get(0).errorCode() == Errors.NONE.code();
        }

        private static String describe(AlterPartitionResponseData response) {
            if (response.errorCode() != Errors.NONE.code()) {
                return Errors.forCode(response.errorCode()).toString();
            }
            AlterPartitionResponseData.PartitionData partition = response.topics().get(0).partitions().get(0);
            return partition.errorCode() != Errors.NONE.code() ? Errors.forCode(partition.errorCode()).toString() :
                String.format("ISR %s, partition epoch %d", partition.isr(), partition.partitionEpoch());
        }

        private boolean heartbeat(Process process) throws Exception {
            OptionalLong shutdownOffset = controller.controlledShutdownOffset(process.id);
            boolean wasFenced = controller.registration(process.id).fenced();
            BrokerHeartbeatReply reply = controller.heartbeat(process.id, process.brokerEpoch, process.metadataOffset(),
                process.wantShutDown);
            if (wasFenced && !controller.registration(process.id).fenced()) {
                invariants.checkUnfencing(process);
            }
            if (reply.shouldShutDown()) {
                invariants.checkShutdown(process, shutdownOffset);
                process.shutdown();
                end(process);
                return after("Broker %d has shut down", process.id);
            }
            return after("Heartbeat of broker %d%s", process.id,
                process.wantShutDown ? ", which wants to shut down" : "");
        }

        // Time

        /** Those who have a session keep it, but one whose heartbeats do not get through. */
        private void pass(long ms, int silentId) throws Exception {
            time.sleep(ms);
            for (Process process : processes) {
                if (process != null && process.id != silentId && isFlowing(Link.HEARTBEAT, process.id) &&
                        controller.isActive(process.id) && !process.wantShutDown) {
                    controller.heartbeat(process.id, process.brokerEpoch, process.metadataOffset(), false);
                }
            }
            for (Process process : processes) {
                if (process != null) {
                    process.scheduler.tick();
                    process.timer.advanceClock(0);
                    closeStuckConnections(process);
                    process.channel.poll();
                }
            }
            controller.fenceStaleBrokers();
        }

        private void closeStuckConnections(Process process) {
            if (process.fetch != null && time.milliseconds() - process.fetch.sentMs > SOCKET_TIMEOUT_MS) {
                abandonFetch(process);
            }
            if (alterPartitions.stream().anyMatch(exchange -> exchange.leader == process && exchange.isConnected() &&
                    time.milliseconds() - exchange.sentMs > SOCKET_TIMEOUT_MS)) {
                process.channel.client.disconnect(CONTROLLER.idString());
            }
        }

        /**
         * Time in which the heartbeats get through that are not held back, but those of one broker, and the rest too if
         * it flows.
         */
        private boolean sleep(int heartbeats, int silentId, boolean isFlowing) throws Exception {
            isSleeping = true;
            for (int i = 0; i < heartbeats; i++) {
                pass(HEARTBEAT_INTERVAL_MS, silentId);
                after("%d ms later", HEARTBEAT_INTERVAL_MS);
                if (isFlowing) {
                    flow();
                }
            }
            isSleeping = false;
            return true;
        }

        private void flow() throws Exception {
            boolean isMoving = true;
            for (int i = 0; i < 200 && isMoving; i++) {
                isMoving = false;
                for (int id = 0; id < NUM_BROKERS; id++) {
                    if (processes[id] != null && isFlowing(Link.METADATA, id)) {
                        isMoving |= publish(processes[id], Integer.MAX_VALUE);
                    }
                    if (processes[id] != null) {
                        isMoving |= moveFetch(processes[id]);
                    }
                    isMoving |= moveAlterPartition(id);
                }
            }
        }

        /** All brokers run, and everything gets through: soon all replicas are in the ISR, with the same log. */
        private boolean recover() throws Exception {
            Arrays.stream(heldLinks).forEach(held -> Arrays.fill(held, false));
            isSleeping = true;
            Optional<String> problem = Optional.empty();
            for (int i = 0; i < 20; i++) {
                if (isReassignmentReplaced && controller.isReassigning()) {
                    controller.reassign(null);
                }
                for (int id = 0; id < NUM_BROKERS; id++) {
                    if (processes[id] == null) {
                        startProcess(id);
                    }
                }
                flow();
                for (Process process : processes) {
                    if (process != null && process.numBatches > 0) {
                        heartbeat(process);
                    }
                }
                flow();
                problem = problem();
                if (problem.isEmpty()) {
                    break;
                }
                pass(i < 2 ? 600 : HEARTBEAT_INTERVAL_MS, -1);
                after("%d ms later", i < 2 ? 600 : HEARTBEAT_INTERVAL_MS);
            }
            if (problem.isEmpty()) {
                produce(processes[controller.partition().leader], 1);
                flow();
                problem = lastAcknowledgedValue == nextValue - 1 ? Optional.empty() :
                    Optional.of("a record is not acknowledged");
            }
            isSleeping = false;
            if (problem.isPresent() && !ONLY_LOSS) {
                throw new Violation("recovery", problem.get(), null);
            }
            isReassignmentReplaced = false;
            uncleanBrokers.clear();
            brokersWithLoss.clear();
            isPowerLossAllowed = controller.minInSyncReplicas() > 1 && controller.partition().replicas.length > 1;
            return after("All brokers run, and nothing is held back");
        }

        private Optional<String> problem() {
            PartitionRegistration partition = controller.partition();
            if (partition.leader < 0 || processes[partition.leader] == null || controller.isReassigning() ||
                    partition.isr.length < partition.replicas.length || partition.elr.length > 0) {
                return Optional.of(controller.describe());
            }
            int end = logs.get(partition.leader).size();
            for (Process process : processes) {
                UnifiedLog log = process == null ? null : process.log();
                if (process == null || process.wantShutDown ||
                        (log != null) != Replicas.contains(partition.replicas, process.id) ||
                        log != null && (log.logEndOffset() != end || log.highWatermark() != end ||
                            log.config().minInSyncReplicas != controller.minInSyncReplicas())) {
                    return Optional.of(process == null ? "a broker does not start" : process.describe());
                }
            }
            return Optional.empty();
        }

        // Faults

        private boolean disconnect(Process process, int number) throws Exception {
            if (number % 2 == 0) {
                if (process.fetch == null) {
                    return false;
                }
                abandonFetch(process);
                return after("The connection for fetches of broker %d is closed", process.id);
            }
            if (!process.channel.client.hasInFlightRequests()) {
                return false;
            }
            process.channel.client.disconnect(CONTROLLER.idString());
            return after("The connection of broker %d to the controller is closed", process.id);
        }

        private boolean kill(Process process) throws Exception {
            process.kill();
            uncleanBrokers.add(process.id);
            invariants.onKill(process.id);
            end(process);
            return after("Broker %d is killed", process.id);
        }

        /** A reassignment which is cancelled, or completes, may leave records on one broker only. */
        private boolean isOnlyInSync(int id) {
            PartitionRegistration partition = controller.partition();
            return IntStream.concat(Arrays.stream(partition.isr), Arrays.stream(partition.elr)).allMatch(r -> r == id);
        }

        /** What has not been flushed of the log is lost, or a part of it. */
        private boolean losePower(Process process, int number) throws Exception {
            UnifiedLog log = process.log();
            if (log == null || log.recoveryPoint() >= log.logEndOffset()) {
                return false;
            }
            long end = log.recoveryPoint() + number % (log.logEndOffset() - log.recoveryPoint());
            process.kill();
            try (FileRecords records = FileRecords.open(new File(log.dir(), "00000000000000000000.log"))) {
                int size = 0;
                for (RecordBatch batch : records.batches()) {
                    // Half a batch may be on the disk.
                    size += batch.baseOffset() < end ? batch.sizeInBytes() :
                        batch.baseOffset() == end && number % 2 == 0 ? batch.sizeInBytes() / 2 : 0;
                }
                records.truncateTo(size);
            }
            truncateEntries(process.id, end);
            uncleanBrokers.add(process.id);
            brokersWithLoss.add(process.id);
            invariants.onKill(process.id);
            end(process);
            return after("Broker %d loses power, and its log from offset %d on", process.id, end);
        }

        private void end(Process process) {
            processes[process.id] = null;
            Arrays.stream(heldLinks).forEach(held -> held[process.id] = false);
        }

        private boolean start(int id) throws Exception {
            return startProcess(id) && after("Broker %d starts", id);
        }

        private boolean startProcess(int id) throws IOException {
            OptionalLong previousBrokerEpoch = new CleanShutdownFileHandler(logDirs[id].toString()).read();
            PartitionRegistration before = controller.partition();
            OptionalLong brokerEpoch = controller.registerBroker(id, new Uuid(2000 + id, ++nextIncarnation),
                previousBrokerEpoch);
            if (brokerEpoch.isEmpty()) {
                return false;
            }
            invariants.checkRegistration(id, before);
            processes[id] = new Process(id, brokerEpoch.getAsLong(), this);
            return true;
        }

        // What is in the logs

        void updateLog(int id) {
            Process process = processes[id];
            if (process == null || process.numBatches == 0) {
                return;
            }
            List<Entry> entries = logs.get(id);
            UnifiedLog log = process.log();
            long end = log == null ? 0 : log.logEndOffset();
            if (end == entries.size() && process.isLogRead) {
                return;
            }
            if (!process.isLogRead) {
                process.isLogRead = true;
                List<Entry> before = List.copyOf(entries);
                truncateEntries(id, 0);
                if (log != null) {
                    readEntries(log, entries, end);
                    invariants.checkRestart(id, log, before, entries);
                }
            }
            if (end < entries.size()) {
                truncateEntries(id, end);
            }
            invariants.onLogChange(id, entries.size());
            if (log != null) {
                readEntries(log, entries, end);
                invariants.checkLeaderEpochs(id, log, entries);
            }
        }

        /** The last records, and how many are before them. */
        String describeLog(int id) {
            List<Entry> entries = logs.get(id);
            int from = Math.max(0, entries.size() - 6);
            return from == 0 ? entries.toString() : from + " records and " + entries.subList(from, entries.size());
        }

        private void truncateEntries(int id, long end) {
            logs.get(id).subList((int) end, logs.get(id).size()).clear();
            invariants.onLogChange(id, end);
        }

        private static void readEntries(UnifiedLog log, List<Entry> entries, long end) {
            try {
                while (entries.size() < end) {
                    Records records = log.read(entries.size(), Integer.MAX_VALUE, FetchIsolation.LOG_END, true).records;
                    for (RecordBatch batch : toMemoryRecords(records).batches()) {
                        for (Record record : batch) {
                            entries.add(new Entry(record.value().getInt(0), batch.partitionLeaderEpoch()));
                        }
                    }
                }
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public void close() throws IOException {
            for (Process process : processes) {
                if (process != null) {
                    process.kill();
                }
            }
        }
    }
}
