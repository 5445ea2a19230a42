package insync.kafka;

import insync.conform.Refused;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.storage.log.FetchPartitionData;

/**
 * What replicas do: append, fetch, propose in-sync sets, learn metadata; and the consumer that
 * reads from them.
 */
final class ReplicaSteps {
  private ReplicaSteps() {}

  static void in(Steps steps) {
    steps.add("leader_appends", List.of("leader"), (w, p) -> appends(w, p.broker("leader")));
    steps.add(
        "follower_sends_fetch",
        List.of("follower", "leader"),
        (w, p) -> sends(w, p.broker("follower"), p.broker("leader")));
    steps.any(
        List.of("leader_answers_fetch", "leader_answers_diverging"),
        List.of("leader", "follower"),
        (w, p) -> Messages.answer(w, p.broker("leader"), p.broker("follower")));
    steps.add(
        "follower_appends",
        List.of("follower"),
        (w, p) -> Messages.take(w, p.broker("follower"), "answered"));
    steps.add(
        "follower_truncates",
        List.of("follower"),
        (w, p) -> Messages.take(w, p.broker("follower"), "diverged"));
    steps.add(
        "leader_proposes_shrink",
        List.of("leader", "lagging"),
        List.of(Steps::everyBroker, Steps::everySet),
        (w, p) -> shrinks(w, p.broker("leader"), p.brokers("lagging")));
    steps.add(
        "leader_proposes_expansion",
        List.of("leader", "f"),
        (w, p) -> expands(w, p.broker("leader"), p.broker("f")));
    steps.add(
        "leader_adopts_isr", List.of("leader"), (w, p) -> hears(w, p.broker("leader"), "accepted"));
    steps.add(
        "leader_rolls_back", List.of("leader"), (w, p) -> hears(w, p.broker("leader"), "refused"));
    Map<String, List<String>> learned = new LinkedHashMap<>();
    learned.put("becomes_follower", List.of("r")); // the first is what a refusal with an effect is
    learned.put("becomes_leader", List.of("r"));
    learned.put("leader_learns_isr", List.of("leader"));
    learned.put("leader_learns_brokers", List.of("leader"));
    learned.put("broker_learns_minimum", List.of("r"));
    learned.put("replica_is_deleted", List.of("r"));
    steps.any(learned, (w, p) -> learns(w, p.broker()));
    steps.addUnlisted( // listed where it has a budget; other designs with it are stories only
        "leader_hears_known_version",
        List.of("leader"),
        (w, p) -> hearsKnown(w, p.broker("leader")));
    steps.add("consumer_reads", List.of("r"), (w, p) -> reads(w, p.broker("r")));
  }

  private static void appends(World world, int leader) {
    History history = world.history;
    if (history.produced >= world.settings.records()) {
      throw Refused.because("beyond the model's bounds");
    }
    Broker broker = world.alive(leader).process;
    if (broker.partition() == null) {
      throw Refused.because("no replica");
    }
    if (!broker.produce(history.produced, world.settings.acks())) {
      throw Refused.answer(
          broker.replies.isEmpty() ? "not appended" : broker.replies.get(0).error().name());
    }
    if (broker.rows().size() > world.settings.log()) {
      throw Refused.because("beyond the model's bounds");
    }
    history.produced++;
    history.writtenIn = History.with(history.writtenIn, broker.leaderEpoch());
  }

  private static void sends(World world, int follower, int leader) {
    Machine look = world.look(follower);
    if (look.process == null || look.process.leader() != leader) {
      throw Refused.because("another leader");
    }
    if (!look.fetch.kind.equals("none") && look.fetch.epoch == look.process.leaderEpoch()) {
      throw Refused.because("its fetcher thread waits for an answer");
    }
    if (!Messages.send(world.alive(follower))) {
      throw Refused.because("it asks nobody");
    }
  }

  private static void shrinks(World world, int leader, Set<Integer> lagging) {
    Machine look = world.look(leader);
    if (!look.leads() || lagging.contains(leader) || !look.process.isr().containsAll(lagging)) {
      throw Refused.because("no leader, or not members");
    }
    Machine at = world.alive(leader);
    Messages.tellLate(at);
    at.clock.now += 1_000_000;
    Set<Integer> members = at.process.isr();
    for (int f : members) {
      if (f != leader && !lagging.contains(f)) {
        Parts.caughtUpNow(at.process.replica(f), at.clock.now);
      }
    }
    at.process.shrink();
    at.clock.now -= world.settings.ownView() ? 1_000_000 : 0;
    members.removeAll(lagging);
    proposes(at, members);
  }

  private static void expands(World world, int leader, int follower) {
    Machine look = world.look(leader);
    Replica known = look.leads() ? look.process.replica(follower) : null;
    if (known == null) {
      throw Refused.because("no leader, or no follower of it");
    }
    if (world.settings.operations() && (look.answeredFetchers >> follower & 1) == 0) {
      throw Refused.because("it asks while it handles a fetch, and none came in this epoch");
    }
    Machine at = world.alive(leader);
    Messages.tellLate(at);
    Set<Integer> members = at.process.isr();
    at.process.expand(follower);
    if (at.process.alterRequest == null && !Steering.OWN_VIEW && !world.settings.ownView()) {
      Parts.Cache cache = at.process.parts.cache;
      cache.eligible = follower;
      cache.eligibleEpoch = Shapes.brokerEpoch(at.process.replica(follower), -2);
      at.process.expand(follower);
      cache.eligible = -1;
      Steering.overrides += at.process.alterRequest == null ? 0 : 1;
    }
    members.add(follower);
    proposes(at, members);
  }

  /** The leader must have asked for exactly this in-sync set. */
  private static void proposes(Machine leader, Set<Integer> wanted) {
    if (leader.alter.kind.equals("requested")) {
      throw Refused.because("a request of it is on its way, and the model holds one");
    }
    if (!Messages.askController(leader)) {
      throw Refused.because("it asks for nothing");
    }
    Set<Integer> proposed = new TreeSet<>();
    leader.alter.partition().newIsrWithEpochs().forEach(member -> proposed.add(member.brokerId()));
    if (!proposed.equals(wanted)) {
      throw Refused.because("it asks for " + Steps.names(proposed));
    }
  }

  private static void hears(World world, int leader, String kind) {
    if (!world.look(leader).alter.kind.equals(kind)) {
      throw Refused.because("no such answer is on its way");
    }
    Machine at = world.alive(leader);
    Machine.Alter alter = at.alter;
    at.alter = new Machine.Alter();
    Messages.tell(at, alter);
    boolean inTime = world.settings.operations() && world.settings.lateNews() == 0;
    if (inTime && kind.equals("accepted")) {
      readsBy(world, at.process, alter.decidedBy);
    }
  }

  /**
   * Its metadata bring what it has just heard, before it does anything else. Where they would bring
   * another configuration first, it reads neither yet.
   */
  private static void readsBy(World world, Broker broker, int records) {
    if (!world.controller().configures(broker.metadataPosition(), records)) {
      broker.learn(world.controller(), records);
    }
  }

  /**
   * How many records a broker is to read. It reads all that there are; a leader that knows the newest
   * version of the partition reads no further than a configuration.
   */
  private static int news(World world, Machine machine) {
    HeldController controller = world.controller();
    PartitionRegistration now = controller.partition();
    boolean newest =
        world.settings.operations()
            && !world.settings.ownView()
            && machine.leads()
            && machine.process.leaderEpoch() == now.leaderEpoch
            && machine.process.partition().getPartitionEpoch() == now.partitionEpoch;
    return newest ? controller.configuredBy() : controller.log().size();
  }

  private static boolean replica(World world, int r) {
    return Arrays.stream(world.controller().partition().replicas).anyMatch(id -> id == r);
  }

  private static Steps.Became learns(World world, int r) throws Exception {
    Machine look = world.look(r);
    if (look.process == null) {
      throw Refused.because("the broker does not run");
    }
    int epoch = look.process.leaderEpoch();
    boolean led = look.leads();
    List<String> away = away(world, look);
    int leader = look.process.leader();
    int version =
        look.process.partition() == null ? -1 : look.process.partition().getPartitionEpoch();
    int minimum = look.minimum();
    int records = news(world, look);
    if (look.process.metadataPosition() >= records) {
      throw Refused.because("there is no news");
    }
    if (!replica(world, r)) {
      deletes(world, r, records);
      return new Steps.Became("replica_is_deleted", "it is no replica any more");
    }
    Machine at = world.alive(r);
    Broker broker = at.process;
    if (broker.partition() == null) {
      at.disk.reopen(r, at.directory(), broker.log() != null);
    }
    broker.learn(world.controller(), records);
    boolean moved = broker.leaderEpoch() != epoch || broker.leader() != leader;
    boolean news = moved || broker.partition().getPartitionEpoch() != version;
    boolean brokers = world.settings.ownView() && !away(world, at).equals(away);
    String is =
        moved ? (broker.leads() ? "becomes_leader" : "becomes_follower") : "leader_learns_isr";
    is = news ? is : "leader_learns_brokers";
    boolean configured = world.settings.operations() && at.minimum() != minimum;
    if (configured && !moved && !(news && broker.leads())) {
      return new Steps.Became("broker_learns_minimum", "it is broker_learns_minimum");
    }
    if (!(news || brokers) || !moved && !broker.leads()) {
      String why = news || brokers ? "it is " + is : "no news of the partition";
      throw broker.leads() // a leader that hears what it knows forgets its proposal: hearsKnown
          ? Refused.because(why)
          : Refused.answer(why);
    }
    if (moved) {
      at.leadingSince = !broker.leads() ? 0 : led ? at.leadingSince : broker.leaderEpoch();
      at.answeredFetchers = 0;
      at.deletedIn = 0;
    }
    if (at.alter.answer != null && news) {
      Messages.drop(at);
    }
    Messages.askController(at);
    if (moved && !Messages.lives(world, r)) {
      Messages.send(at);
    }
    return new Steps.Became(is, "it is " + is);
  }

  /** It learns that it has no replica any more: ReplicaManager.stopPartitions. */
  private static void deletes(World world, int r, int records) throws Exception {
    Machine look = world.look(r);
    if (look.process.leader() < 0 && look.process.rows().isEmpty()) {
      throw Refused.because("it follows nobody and has nothing");
    }
    int minimum = look.minimum();
    Machine at = world.alive(r);
    Disk disk = Disk.of(at.process, at.watermark(), null);
    if (at.process.partition() == null) {
      startsWithStray(world, at, disk, records);
    } else {
      disk.prepare(r, at.directory()); // the files that Kafka renames now
    }
    at.process.learn(world.controller(), records);
    if (at.process.partition() != null || at.process.log() != null) {
      throw Refused.answer("it keeps its replica");
    }
    at.disk = Disk.NEW;
    at.minimum = minimum;
    at.leadingSince = 0;
    at.answeredFetchers = 0;
    at.deletedIn = world.controller().partition().leaderEpoch;
    if (at.alter.answer != null) {
      Messages.drop(at);
    }
    if (!Messages.lives(world, r)) {
      Messages.send(at);
    }
  }

  /**
   * The first metadata that a process reads have no replica on its broker: LogManager.startup takes
   * its log for a stray. Kafka loads logs in the step in which it first publishes metadata.
   */
  private static void startsWithStray(World world, Machine at, Disk disk, int records)
      throws Exception {
    at.process = new Broker(at.id, at.process.epoch, at.clock, disk, at.directory());
    at.process.load(world.controller().log().subList(0, records), true);
  }

  /** Its metadata bring the partition's version that the leader knows from an answer. */
  private static void hearsKnown(World world, int leader) throws Exception {
    Machine look = world.look(leader);
    if (!look.leads()) {
      throw Refused.because("no leader");
    }
    int version = look.process.partition().getPartitionEpoch();
    if (version != world.controller().partition().partitionEpoch) {
      throw Refused.because("the metadata are newer");
    }
    if (look.process.metadataPosition() == world.controller().log().size()) {
      throw Refused.because("there is no news");
    }
    if (world.settings.operations()) {
      if (!look.process.ahead() || world.history.lateNews >= world.settings.lateNews()) {
        throw Refused.because("it has read this version, or beyond the model's bounds");
      }
      world.history.lateNews++;
    }
    Machine at = world.alive(leader);
    at.process.learn(world.controller());
    if (at.alter.answer != null) {
      Messages.drop(at);
    }
  }

  /**
   * Whom a leader's own metadata calls fenced or shutting down: KRaftMetadataCache; nobody for a
   * follower.
   */
  static List<String> away(World world, Machine machine) {
    List<Integer> found = new ArrayList<>();
    for (int b = 0; b < world.size() && machine.leads(); b++) {
      Parts.Cache cache = machine.process.parts.cache;
      if (cache.isBrokerFenced(b) || cache.isBrokerShuttingDown(b)) {
        found.add(b);
      }
    }
    return Steps.names(found);
  }

  private static void reads(World world, int r) {
    History history = world.history;
    if (world.settings.consumers() == 0) {
      throw Refused.because("there is no consumer");
    }
    Machine at = world.alive(r);
    if (at.process.partition() == null) {
      throw Refused.because("no replica");
    }
    FetchPartitionData got =
        at.process.read(
            world.controller().topic(), history.position, world.settings.followerReads());
    if (got.error != Errors.NONE) {
      throw Refused.answer(got.error.name());
    }
    Integer name = Broker.name(Messages.inMemory(got.records));
    if (name == null) {
      throw Refused.answer("there is nothing to read");
    }
    history.position++;
    history.consumed = History.with(history.consumed, name);
  }
}
