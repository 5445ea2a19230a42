package insync.kafka;

import insync.conform.Refused;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.storage.log.FetchPartitionData;

/**
 * What replicas do: append, fetch, propose in-sync sets, hear answers; and the consumer that reads
 * from them.
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
