package org.apache.kafka.controller;

import kafka.cluster.Partition;

import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.controller.SimulatedBroker.AlterPartitionExchange;
import org.apache.kafka.controller.SimulatedBroker.FetchExchange;
import org.apache.kafka.controller.SimulatedBroker.FetcherThread;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.server.ReplicaFetch;
import org.apache.kafka.server.partition.PartitionState;
import org.apache.kafka.server.partition.PendingExpandIsr;
import org.apache.kafka.server.replica.ReplicaState;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import org.junit.jupiter.api.Test;

import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import static org.apache.kafka.controller.SimulatedBroker.CONTROLLER;
import static org.apache.kafka.controller.SimulatedBroker.STALE_REQUEST_MS;
import static org.apache.kafka.controller.SimulatedController.TOPIC;
import static org.junit.jupiter.api.Assertions.fail;

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
    private static final long START_MS = 1_000_000_000L;
    private static final long HEARTBEAT_INTERVAL_MS = 8000; // less than broker.session.timeout.ms
    /** replica.socket.timeout.ms and controller.socket.timeout.ms. */
    private static final long SOCKET_TIMEOUT_MS = 30_000;

    private static final int EVENTS_PER_RUN = Integer.parseInt(System.getProperty("simulation.events", "2000"));
    /** With this only the loss of a record is a violation, and not yet what makes one possible. */
    private static final boolean ONLY_LOSS = Boolean.getBoolean("simulation.loss");

    @Test
    public void testAcknowledgedRecordsSurvive() throws Exception {
        String givenSeed = System.getProperty("simulation.seed");
        long firstSeed = Long.parseLong(
            givenSeed == null ? System.getProperty("simulation.first.seed", "1") : givenSeed);
        long maxSeconds = Long.parseLong(System.getProperty("simulation.seconds", "60"));
        long runs = 0;
        long numEvents = 0;
        double start = processorSeconds();
        for (long seed = firstSeed; seed == firstSeed || givenSeed == null; seed++) {
            if (runs > 0 && processorSeconds() - start > maxSeconds) {
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
                fail(String.format("%s%nSeed %d, run %d, after %.0f s of processor and %d events.%n%n%s",
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

    /** An AlterPartition is on its way while broker 1, which it proposes, is restarted. This one holds as released. */
    @Test
    public void testRestartWhileAlterPartitionIsSent() throws Exception {
        replay(1, List.of(0, 1),
            event(EventType.PRODUCE, 0), event(EventType.DISCONNECT, 1), new Event(EventType.LAG, 0, 1),
            event(EventType.ALTER_PARTITION, 0), event(EventType.ALTER_PARTITION, 0), event(EventType.METADATA, 0),
            event(EventType.FETCH, 1), event(EventType.FETCH, 1), event(EventType.FETCH, 1),
            new Event(EventType.HOLD, 0, Link.ALTER_PARTITION.ordinal()), event(EventType.SHUTDOWN, 1),
            new Event(EventType.SLEEP, 0, 1), event(EventType.START, 1), event(EventType.METADATA, 1),
            event(EventType.HEARTBEAT, 1), event(EventType.RELEASE, 0), event(EventType.ALTER_PARTITION, 0));
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
        PRODUCE(8), FETCH(2), METADATA(2), ALTER_PARTITION(2), HEARTBEAT(6), START(6), RELEASE(1), TICK(1), RECOVER(0),
        SLEEP(1, true), LAG(4, true), LOSE_SESSION(5, true), HOLD(3, true), DISCONNECT(3, true), STALE_FETCH(2, true),
        STALE_ALTER_PARTITION(3), ELECTION(2), REASSIGN(2, true), CANCEL_REASSIGNMENT(2, true),
        MIN_ISR(4, true), SHUTDOWN(2, true), KILL(1, true), POWER_LOSS(2, true);

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
        private final SimulatedBroker[] leaders = new SimulatedBroker[NUM_BROKERS];
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
            for (int id : isr) {
                if (simulation.brokers[id] != null) {
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

        void checkUnfencing(SimulatedBroker broker) {
            check(ONLY_LOSS || broker.metadataOffset() >= broker.brokerEpoch, "unfenced-broker-knows-registration",
                "Broker %d is unfenced at metadata offset %d, and its broker epoch is %d", broker.id,
                broker.metadataOffset(), broker.brokerEpoch);
        }

        /** A broker which was in controlled shutdown shuts down. */
        void checkShutdown(SimulatedBroker broker, OptionalLong controlledShutdownOffset) {
            checkpointedHighWatermarks[broker.id] = broker.log() == null ? 0 : broker.log().highWatermark();
            for (SimulatedBroker other : simulation.brokers) {
                check(ONLY_LOSS || controlledShutdownOffset.isEmpty() || other == null || other == broker ||
                        !simulation.controller.isActive(other.id) ||
                        other.metadataOffset() >= controlledShutdownOffset.getAsLong(),
                    "shutdown-known-by-active-brokers", "Broker %d shuts down, which broker %d does not know",
                    broker.id, other == null ? -1 : other.id);
            }
        }

        // The brokers

        /** After each event. */
        void check() {
            for (int id = 0; id < NUM_BROKERS; id++) {
                simulation.updateLog(id);
            }
            for (SimulatedBroker broker : simulation.brokers) {
                if (broker != null && broker.log() != null) {
                    checkLeader(broker, broker.log());
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
            for (SimulatedBroker broker : simulation.brokers) {
                if (broker != null && broker.log() != null && !ONLY_LOSS) {
                    checkHighWatermark(broker, broker.log());
                    if (broker.isLeader() && broker.partition().getLeaderEpoch() == partition.leaderEpoch) {
                        checkMaximalIsr(broker.id, broker.partition().partitionState().maximalIsr());
                        checkPositions(broker, broker.partition());
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

        private void checkLeader(SimulatedBroker broker, UnifiedLog log) {
            int id = broker.id;
            Partition leader = broker.partition();
            if (leader == null || !leader.isLeader()) {
                leaders[id] = null;
                return;
            }
            int leaderEpoch = leader.getLeaderEpoch();
            long highWatermark = log.highWatermark();
            check(leaders[id] != broker || leaderEpochs[id] != leaderEpoch || highWatermarks[id] <= highWatermark,
                "high-watermark-grows", "from %d to %d on leader %d", highWatermarks[id], highWatermark, id);
            List<Entry> entries = simulation.logs.get(id);
            check(highWatermark <= entries.size(), "high-watermark-in-log", "%d on leader %d, whose log ends at %d",
                highWatermark, id, entries.size());
            if (leaders[id] != broker || leaderEpochs[id] != leaderEpoch) {
                isChanged = true;
                Arrays.fill(shrinkableMs[id], simulation.time.milliseconds());
            }
            if (!ONLY_LOSS) {
                checkLag(broker, leader, log);
            }
            leaders[id] = broker;
            leaderEpochs[id] = leaderEpoch;
            highWatermarks[id] = highWatermark;
            while (committed.size() < highWatermark) {
                committed.add(new Commit(entries.get(committed.size()), leaderEpoch));
                isChanged = true;
            }
            if (partitionStates[id] != leader.partitionState()) {
                partitionStates[id] = leader.partitionState();
                if (partitionStates[id] instanceof PendingExpandIsr expansion && !ONLY_LOSS) {
                    checkExpansion(broker, expansion.newInSyncReplicaId());
                }
            }
        }

        /** A leader looks for slow replicas each half of replica.lag.time.max.ms. */
        private void checkLag(SimulatedBroker broker, Partition leader, UnifiedLog log) {
            long nowMs = simulation.time.milliseconds();
            long maxLagMs = broker.config.replicaLagTimeMaxMs() * 3 / 2 + HEARTBEAT_INTERVAL_MS;
            for (int id : leader.partitionState().maximalIsr()) {
                ReplicaState state = id == broker.id ? null : leader.getReplica(id).get().stateSnapshot();
                if (state == null || state.logEndOffset() >= log.logEndOffset() ||
                        leader.partitionState().isInflight() || !broker.channel.isIdle()) {
                    shrinkableMs[broker.id][id] = nowMs;
                }
                check(nowMs - shrinkableMs[broker.id][id] <= maxLagMs ||
                        state.isCaughtUp(log.logEndOffset(), nowMs, maxLagMs), "slow-replica-leaves-isr",
                    "Leader %d still has broker %d in the ISR", broker.id, id);
            }
        }

        /** A leader proposes a replica for the ISR. */
        private void checkExpansion(SimulatedBroker leader, int id) {
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
        private void checkPositions(SimulatedBroker leader, Partition leaderPartition) {
            for (int id : leaderPartition.partitionState().isr()) {
                SimulatedBroker broker = simulation.brokers[id];
                Partition replica = broker == null || broker == leader ? null : broker.partition();
                if (replica != null && replica.getLeaderEpoch() == leaderPartition.getLeaderEpoch()) {
                    ReplicaState state = leaderPartition.getReplica(id).get().stateSnapshot();
                    check(!state.brokerEpoch().equals(Optional.of(broker.brokerEpoch)) ||
                            state.logEndOffset() <= broker.log().logEndOffset(),
                        "position-in-log", "Leader %d has position %d of broker %d, whose log ends at %d", leader.id,
                        state.logEndOffset(), id, broker.log().logEndOffset());
                }
            }
        }

        private void checkHighWatermark(SimulatedBroker broker, UnifiedLog log) {
            long highWatermark = log.highWatermark();
            check(highWatermark <= committed.size(), "high-watermark-committed",
                "%d on broker %d, and %d on leaders", highWatermark, broker.id, committed.size());
            if (highWatermark > numCommitted[broker.id]) {
                check(false, "logs-agree", "Broker %d has %s, with the high watermark %d, and %s was committed",
                    broker.id, simulation.describeLog(broker.id), highWatermark,
                    committed.get(numCommitted[broker.id]));
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
            for (SimulatedBroker broker : simulation.brokers) {
                if (broker != null && broker.isLeader()) {
                    checkLeaderHasCommitted(broker.id, broker.partition().getLeaderEpoch());
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
        final SimulatedBroker[] brokers = new SimulatedBroker[NUM_BROKERS];
        /** What is in the logs, whether or not a broker runs. */
        final List<List<Entry>> logs = new ArrayList<>();
        /** Who has been killed and was not in the ISR since, and who of them has lost a part of the log by it. */
        final Set<Integer> uncleanBrokers = new TreeSet<>();
        final Set<Integer> brokersWithLoss = new TreeSet<>();
        final List<String> story = new ArrayList<>();
        final int minInSyncReplicas;
        final SimulatedController controller;
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
            controller = new SimulatedController(minInSyncReplicas, time, this::onMetadataChange);
            invariants = new Invariants(this);
            for (int id = 0; id < NUM_BROKERS; id++) {
                logs.add(new ArrayList<>());
                logDirs[id] = new File(ROOT, Integer.toString(id));
                Utils.delete(logDirs[id]);
                Files.createDirectories(logDirs[id].toPath());
                Files.writeString(logDirs[id].toPath().resolve("meta.properties"), String.format(
                    "version=1%ncluster.id=%s%nnode.id=%d%ndirectory.id=%s%n", "cluster", id,
                    SimulatedController.logDirId(id)));
                startBroker(id);
            }
            flow();
            for (SimulatedBroker broker : brokers) {
                heartbeat(broker);
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

        /** Those of three replicas more than once: they are what is usual. */
        private static List<List<Integer>> assignments() {
            List<List<Integer>> all = new ArrayList<>();
            for (int first = 0; first < NUM_BROKERS; first++) {
                all.add(List.of(first));
                for (int second = 0; second < NUM_BROKERS; second++) {
                    for (int third = 0; third < NUM_BROKERS && second != first; third++) {
                        if (third == second) {
                            all.add(List.of(first, second));
                        } else if (third != first) {
                            all.addAll(Collections.nCopies(4, List.of(first, second, third)));
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
            SimulatedBroker broker = brokers[id];
            boolean isReady = broker != null && broker.numBatches > 0;
            switch (event.type()) {
                case PRODUCE:
                    return isReady && broker.isLeader() && produce(broker, 1 + number % 3);
                case FETCH:
                    return isReady && moveFetch(broker);
                case METADATA:
                    return broker != null && isFlowing(Link.METADATA, id) &&
                        publish(broker,
                            number % 3 == 1 && broker.numBatches > 0 ? 1 + number % 2 : Integer.MAX_VALUE);
                case ALTER_PARTITION:
                    return moveAlterPartition(id);
                case HEARTBEAT: // of a broker which has no session, or wants to end it
                    return broker != null && isFlowing(Link.HEARTBEAT, id) &&
                        (!controller.isActive(id) || broker.wantShutDown) && heartbeat(broker);
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
                    return isReady && disconnect(broker, number);
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
                    return isReady && !broker.wantShutDown && (broker.wantShutDown = true) && heartbeat(broker);
                case KILL:
                    return broker != null && brokersWithLoss.isEmpty() && kill(broker);
                case POWER_LOSS:
                    return isReady && isPowerLossAllowed && uncleanBrokers.isEmpty() && !isOnlyInSync(id) &&
                        losePower(broker, number);
                case START:
                    return broker == null && start(id);
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
            for (SimulatedBroker broker : brokers) {
                if (broker != null) {
                    pump(broker);
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
                states.put("broker " + id, describe(id));
            }
            states.forEach((name, state) -> {
                if (!state.equals(lastStates.put(name, state))) {
                    story.add("              " + state);
                }
            });
        }

        private String describe(int id) {
            return brokers[id] == null ? "broker " + id + ": does not run" : brokers[id].describe(describeLog(id));
        }

        // What brokers do

        private boolean produce(SimulatedBroker broker, int numRecords) throws Exception {
            int first = nextValue;
            for (int i = 0; i < numRecords; i++) {
                append(broker, nextValue++);
            }
            broker.replicaManager.tryCompleteActions();
            return after("Records %d to %d are sent to broker %d", first, nextValue - 1, broker.id);
        }

        private void append(SimulatedBroker broker, int value) {
            broker.append(value, offset -> {
                invariants.acknowledge(offset, value, Math.min(broker.log().config().minInSyncReplicas,
                    broker.partition().assignmentState().replicationFactor()));
                lastAcknowledgedValue = value;
                tellLine("record %d is acknowledged by broker %d", value, broker.id);
            });
        }

        /** Sends the next fetch, and requests to the controller. */
        private void pump(SimulatedBroker broker) {
            if (!broker.channel.isIdle()) {
                broker.channel.poll();
            }
            for (ClientRequest request : broker.channel.client.requests()) {
                if (alterPartitions.stream().noneMatch(exchange -> exchange.request == request)) {
                    AlterPartitionExchange exchange = new AlterPartitionExchange(request, broker, time.milliseconds());
                    alterPartitions.add(exchange);
                    tellLine("broker %d sends AlterPartition: ISR %s", broker.id, exchange);
                }
            }
            FetcherThread fetcher = broker.numBatches == 0 ? null : broker.fetcher();
            if (broker.fetch != null && (broker.fetch.fetcher != fetcher || !broker.fetch.leader.isRunning)) {
                abandonFetch(broker);
            }
            if (broker.fetch == null && fetcher != null) {
                SimulatedBroker leader = brokers[fetcher.leader().brokerEndPoint().id()];
                ReplicaFetch fetch = leader == null || leader.numBatches == 0 ? null : fetcher.nextFetch();
                if (fetch != null) {
                    broker.fetch = new FetchExchange(fetcher, fetch, leader, time.milliseconds());
                }
            }
        }

        private void abandonFetch(SimulatedBroker broker) {
            if (!broker.fetch.isReceived) {
                staleFetches.add(broker.fetch);
            }
            broker.fetch = null;
        }

        /** The request reaches the leader, or the response the follower. */
        private boolean moveFetch(SimulatedBroker broker) throws Exception {
            FetchExchange fetch = broker.fetch;
            if (fetch == null || fetch.isReceived && fetch.response == null ||
                    !isFlowing(fetch.isReceived ? Link.FETCH_RESPONSE : Link.FETCH, broker.id)) {
                return false;
            }
            if (!fetch.isReceived) {
                fetch.leader.receive(fetch);
                return after("A fetch of broker %d %s reaches broker %d", broker.id, fetch, fetch.leader.id);
            }
            broker.fetch = null;
            fetch.fetcher.handleResponse(fetch);
            return after("The response to a fetch reaches broker %d", broker.id);
        }

        private boolean receiveStaleFetch(int number) throws Exception {
            staleFetches.removeIf(fetch ->
                !fetch.leader.isRunning || time.milliseconds() - fetch.sentMs > STALE_REQUEST_MS);
            if (staleFetches.isEmpty()) {
                return false;
            }
            FetchExchange fetch = staleFetches.remove(number % staleFetches.size());
            fetch.leader.receive(fetch);
            return after("A fetch %s on a closed connection reaches broker %d", fetch, fetch.leader.id);
        }

        private boolean publish(SimulatedBroker broker, int maxBatches) throws Exception {
            int from = broker.numBatches;
            int to = (int) Math.min(controller.batches.size(), (long) from + maxBatches);
            if (from == to) {
                return false;
            }
            broker.publish(controller.batches.subList(from, to), time.milliseconds());
            return after("Broker %d gets metadata, %d batches in one delta", broker.id, to - from);
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

        private boolean heartbeat(SimulatedBroker broker) throws Exception {
            OptionalLong shutdownOffset = controller.controlledShutdownOffset(broker.id);
            boolean wasFenced = controller.registration(broker.id).fenced();
            BrokerHeartbeatReply reply = controller.heartbeat(broker.id, broker.brokerEpoch, broker.metadataOffset(),
                broker.wantShutDown);
            if (wasFenced && !controller.registration(broker.id).fenced()) {
                invariants.checkUnfencing(broker);
            }
            if (reply.shouldShutDown()) {
                invariants.checkShutdown(broker, shutdownOffset);
                broker.shutdown();
                end(broker);
                return after("Broker %d has shut down", broker.id);
            }
            return after("Heartbeat of broker %d%s", broker.id,
                broker.wantShutDown ? ", which wants to shut down" : "");
        }

        // Time

        /** Those who have a session keep it, but one whose heartbeats do not get through. */
        private void pass(long ms, int silentId) throws Exception {
            time.sleep(ms);
            for (SimulatedBroker broker : brokers) {
                if (broker != null && broker.id != silentId && isFlowing(Link.HEARTBEAT, broker.id) &&
                        controller.isActive(broker.id) && !broker.wantShutDown) {
                    controller.heartbeat(broker.id, broker.brokerEpoch, broker.metadataOffset(), false);
                }
            }
            for (SimulatedBroker broker : brokers) {
                if (broker != null) {
                    broker.scheduler.tick();
                    broker.timer.advanceClock(0);
                    closeStuckConnections(broker);
                    broker.channel.poll();
                }
            }
            controller.fenceStaleBrokers();
        }

        private void closeStuckConnections(SimulatedBroker broker) {
            if (broker.fetch != null && time.milliseconds() - broker.fetch.sentMs > SOCKET_TIMEOUT_MS) {
                abandonFetch(broker);
            }
            if (alterPartitions.stream().anyMatch(exchange -> exchange.leader == broker && exchange.isConnected() &&
                    time.milliseconds() - exchange.sentMs > SOCKET_TIMEOUT_MS)) {
                broker.channel.client.disconnect(CONTROLLER.idString());
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
                    if (brokers[id] != null && isFlowing(Link.METADATA, id)) {
                        isMoving |= publish(brokers[id], Integer.MAX_VALUE);
                    }
                    if (brokers[id] != null) {
                        isMoving |= moveFetch(brokers[id]);
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
                    if (brokers[id] == null) {
                        startBroker(id);
                    }
                }
                flow();
                for (SimulatedBroker broker : brokers) {
                    if (broker != null && broker.numBatches > 0) {
                        heartbeat(broker);
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
                produce(brokers[controller.partition().leader], 1);
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
            if (partition.leader < 0 || brokers[partition.leader] == null || controller.isReassigning() ||
                    partition.isr.length < partition.replicas.length || partition.elr.length > 0) {
                return Optional.of(controller.describe());
            }
            int end = logs.get(partition.leader).size();
            for (SimulatedBroker broker : brokers) {
                UnifiedLog log = broker == null ? null : broker.log();
                if (broker == null || broker.wantShutDown ||
                        (log != null) != Replicas.contains(partition.replicas, broker.id) ||
                        log != null && (log.logEndOffset() != end || log.highWatermark() != end ||
                            log.config().minInSyncReplicas != controller.minInSyncReplicas())) {
                    return Optional.of(broker == null ? "a broker does not start" : describe(broker.id));
                }
            }
            return Optional.empty();
        }

        // Faults

        private boolean disconnect(SimulatedBroker broker, int number) throws Exception {
            if (number % 2 == 0) {
                if (broker.fetch == null) {
                    return false;
                }
                abandonFetch(broker);
                return after("The connection for fetches of broker %d is closed", broker.id);
            }
            if (!broker.channel.client.hasInFlightRequests()) {
                return false;
            }
            broker.channel.client.disconnect(CONTROLLER.idString());
            return after("The connection of broker %d to the controller is closed", broker.id);
        }

        private boolean kill(SimulatedBroker broker) throws Exception {
            broker.kill();
            uncleanBrokers.add(broker.id);
            invariants.onKill(broker.id);
            end(broker);
            return after("Broker %d is killed", broker.id);
        }

        /** A reassignment which is cancelled, or completes, may leave records on one broker only. */
        private boolean isOnlyInSync(int id) {
            PartitionRegistration partition = controller.partition();
            return IntStream.concat(Arrays.stream(partition.isr), Arrays.stream(partition.elr)).allMatch(r -> r == id);
        }

        /** What has not been flushed of the log is lost, or a part of it. */
        private boolean losePower(SimulatedBroker broker, int number) throws Exception {
            UnifiedLog log = broker.log();
            if (log == null || log.recoveryPoint() >= log.logEndOffset()) {
                return false;
            }
            long end = log.recoveryPoint() + number % (log.logEndOffset() - log.recoveryPoint());
            broker.kill();
            try (FileRecords records = FileRecords.open(new File(log.dir(), "00000000000000000000.log"))) {
                int size = 0;
                for (RecordBatch batch : records.batches()) {
                    // Half a batch may be on the disk.
                    size += batch.baseOffset() < end ? batch.sizeInBytes() :
                        batch.baseOffset() == end && number % 2 == 0 ? batch.sizeInBytes() / 2 : 0;
                }
                records.truncateTo(size);
            }
            truncateEntries(broker.id, end);
            uncleanBrokers.add(broker.id);
            brokersWithLoss.add(broker.id);
            invariants.onKill(broker.id);
            end(broker);
            return after("Broker %d loses power, and its log from offset %d on", broker.id, end);
        }

        private void end(SimulatedBroker broker) {
            brokers[broker.id] = null;
            Arrays.stream(heldLinks).forEach(held -> held[broker.id] = false);
        }

        private boolean start(int id) throws Exception {
            return startBroker(id) && after("Broker %d starts", id);
        }

        private boolean startBroker(int id) throws IOException {
            OptionalLong previousBrokerEpoch = new CleanShutdownFileHandler(logDirs[id].toString()).read();
            PartitionRegistration before = controller.partition();
            OptionalLong brokerEpoch = controller.registerBroker(id, new Uuid(2000 + id, ++nextIncarnation),
                previousBrokerEpoch);
            if (brokerEpoch.isEmpty()) {
                return false;
            }
            invariants.checkRegistration(id, before);
            brokers[id] = new SimulatedBroker(id, brokerEpoch.getAsLong(), logDirs[id], minInSyncReplicas, time,
                leaderId -> brokers[leaderId]);
            return true;
        }

        // What is in the logs

        void updateLog(int id) {
            SimulatedBroker broker = brokers[id];
            if (broker == null || broker.numBatches == 0) {
                return;
            }
            List<Entry> entries = logs.get(id);
            UnifiedLog log = broker.log();
            long end = log == null ? 0 : log.logEndOffset();
            if (end == entries.size() && broker.isLogRead) {
                return;
            }
            if (!broker.isLogRead) {
                broker.isLogRead = true;
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
                    for (RecordBatch batch : SimulatedBroker.toMemoryRecords(records).batches()) {
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
            for (SimulatedBroker broker : brokers) {
                if (broker != null) {
                    broker.kill();
                }
            }
        }
    }
}
