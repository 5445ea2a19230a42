package insync.kafka;

import insync.conform.Refused;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.controller.HeldController;
import org.apache.kafka.metadata.PartitionRegistration;

/**
 * What the controller does: it decides requests, fences and unfences brokers, and elects leaders.
 */
final class ControllerSteps {
  private ControllerSteps() {}

  static void in(Steps steps) {
    steps.any(
        List.of(
            "controller_accepts_alter_partition",
            "controller_refuses_alter_partition",
            "controller_rejects_stale_alter_partition"),
        List.of("leader"),
        (w, p) -> decides(w, p.broker("leader")));
    steps.add(
        "controller_refuses_later_copy",
        List.of("leader"),
        (w, p) -> refusesLaterCopy(w, p.broker("leader")));
    steps.any(
        List.of(
            "controller_fences_outsider",
            "controller_fences_follower",
            "controller_fences_last_leader"),
        List.of("r"),
        (w, p) -> fences(w, p.broker("r"), -1));
    steps.any(
        List.of("controller_fences_leader"),
        List.of("r", "successor"),
        (w, p) -> fences(w, p.broker("r"), p.broker("successor")));
    steps.add(
        "controller_accepts_and_completes",
        List.of("leader", "successor"),
        (w, p) -> completes(w, p.broker("leader"), p.broker("successor")));
    steps.add(
        "controller_sets_minimum",
        List.of("value"),
        List.of(Steps::everyMinimum),
        (w, p) -> setsMinimum(w, p.number("value")));
    steps.add(
        "controller_switches_unclean_election", List.of(), (w, p) -> switchesUnclean(w));
    steps.add(
        "controller_elects_unclean_since_switched",
        List.of("leader"),
        (w, p) -> electsUncleanInTime(w, p.broker("leader")));
    steps.add(
        "controller_starts_reassignment",
        List.of("target"),
        List.of(Steps::everySet),
        (w, p) -> starts(w, p.brokers("target")));
    steps.add(
        "controller_reassigns_at_once",
        List.of("target", "leader"),
        List.of(Steps::everySet, Steps::everyBroker),
        (w, p) -> reassigns(w, p.brokers("target"), p.broker("leader")));
    steps.add(
        "controller_cancels_reassignment",
        List.of("leader"),
        (w, p) -> cancels(w, p.broker("leader")));
    steps.add("controller_unfences", List.of("r"), (w, p) -> unfences(w, p.broker("r")));
    steps.any(
        List.of("controller_elects_returned", "controller_elects_last_known_leader"),
        List.of("r"),
        (w, p) -> elects(w, p.broker("r")));
    steps.add(
        "controller_moves_leadership", List.of("leader"), (w, p) -> moves(w, p.broker("leader")));
    steps.add(
        "controller_elects_unclean",
        List.of("leader"),
        (w, p) -> electsUnclean(w, p.broker("leader")));
  }

  private static Steps.Became decides(World world, int leader) {
    boolean waits = world.controller().reassigning();
    Errors error = answers(world, leader);
    String is =
        switch (error) {
          case NONE -> "controller_accepts_alter_partition";
          case INELIGIBLE_REPLICA -> "controller_refuses_alter_partition";
          default -> "controller_rejects_stale_alter_partition";
        };
    boolean completed = waits && !world.controller().reassigning();
    return new Steps.Became(completed ? "controller_accepts_and_completes" : is, error.name());
  }

  /** The controller accepts what a leader has asked, and that completes a reassignment. */
  private static void completes(World world, int leader, int successor) {
    if (!world.controller().reassigning()) {
      throw Refused.because("no reassignment is under way");
    }
    world.decides().prefer(successor);
    Errors error = answers(world, leader);
    if (world.controller().reassigning()) {
      throw Refused.another("it completes nothing: " + error.name());
    }
    least(world);
    leads(world, successor);
  }

  private static void leads(World world, int leader) {
    int elected = world.controller().partition().leader;
    if (elected != leader) {
      throw Refused.another((elected < 0 ? "nobody" : Steps.name(elected)) + " leads");
    }
  }

  /** The controller's answer to what a leader has asked. */
  private static Errors answers(World world, int leader) {
    if (!world.look(leader).alter.kind.equals("requested")) {
      throw Refused.because("no request is on its way");
    }
    Machine at = Steering.PROMPT ? world.at(leader) : world.beside(leader);
    boolean hears = Messages.hears(at);
    AlterPartitionResponseData answer = world.decides().alter(at.alter.request);
    Errors error =
        answer == null
            ? Errors.STALE_BROKER_EPOCH
            : Errors.forCode(answer.topics().get(0).partitions().get(0).errorCode());
    at.alter.answer = answer;
    at.alter.decidedBy = world.controller().log().size();
    at.alter.kind = error == Errors.NONE ? "accepted" : "refused";
    boolean stays = error == Errors.NONE && sameEpoch(at, answer);
    if (!hears || !stays && error != Errors.INELIGIBLE_REPLICA) {
      Messages.drop(at);
    }
    return error;
  }

  /** Whether an answer is of the leader's epoch: a proposal that removes a replica begins another. */
  private static boolean sameEpoch(Machine leader, AlterPartitionResponseData answer) {
    return leader.process != null
        && answer.topics().get(0).partitions().get(0).leaderEpoch() == leader.process.leaderEpoch();
  }

  // What people do

  /** The budget of the model, and whether what was done changed anything. */
  private static void within(boolean budget) {
    if (!budget) {
      throw Refused.because("beyond the model's bounds");
    }
  }

  /** The least number of logs that an acknowledgement takes by what the controller has now. */
  static void least(World world) {
    HeldController controller = world.controller();
    int now = Math.min(controller.minimum(), controller.partition().replicas.length);
    world.history.least = Math.min(world.history.least, now);
  }

  private static void setsMinimum(World world, int value) {
    if (!world.settings.operations()) {
      throw Refused.cannot("this adapter has no controller_sets_minimum without a budget for it");
    }
    within(world.history.minimumChanges < world.settings.minimumChanges() && value > 0);
    int before = world.controller().minimum();
    int version = world.controller().partition().partitionEpoch;
    world.decides().setMinimum(value);
    if (value == before && world.controller().partition().partitionEpoch == version) {
      throw Refused.because("nothing changes");
    }
    world.history.minimumChanges++;
    least(world);
  }

  private static void switchesUnclean(World world) {
    within(world.history.uncleanSwitches < world.settings.uncleanSwitches());
    world.history.uncleanSwitches++;
    world.decides().setUnclean(!world.controller().unclean());
  }

  /** What the controller has for the partition before somebody asks for other replicas. */
  private static PartitionRegistration askedRegistration(World world) {
    within(world.history.reassignments < world.settings.reassignments());
    PartitionRegistration before = world.controller().partition();
    if (before.leader < 0) {
      throw Refused.because("nobody leads: the model leaves that out");
    }
    world.history.reassignments++;
    return before;
  }

  private static void asksFor(World world, Set<Integer> target, int first) {
    PartitionRegistration before = askedRegistration(world);
    Set<Integer> replicas =
        Arrays.stream(before.replicas).boxed().collect(Collectors.toCollection(TreeSet::new));
    within(target.size() >= world.settings.leastReplicas() && !target.equals(replicas));
    List<Integer> order = new ArrayList<>(target);
    if (order.remove((Integer) first)) {
      order.add(0, first);
    }
    reassigned(world, before, order);
  }

  private static void reassigned(World world, PartitionRegistration before, List<Integer> target) {
    Errors error = world.decides().reassign(target);
    if (error != Errors.NONE || assignment(before).equals(assignment(world.controller().partition()))) {
      throw Refused.because("nothing changes, or the order only: " + error.name());
    }
  }

  private static List<List<String>> assignment(PartitionRegistration of) {
    return Stream.of(of.replicas, of.addingReplicas, of.removingReplicas).map(Steps::names).toList();
  }

  private static void starts(World world, Set<Integer> target) {
    asksFor(world, target, -1);
    if (!world.controller().reassigning()) {
      throw Refused.another("that is complete at once");
    }
  }

  private static void reassigns(World world, Set<Integer> target, int leader) {
    asksFor(world, target, leader);
    if (world.controller().reassigning()) {
      throw Refused.another("that has to wait");
    }
    least(world);
    leads(world, leader);
  }

  private static void cancels(World world, int leader) {
    PartitionRegistration before = askedRegistration(world);
    if (!world.controller().reassigning()) {
      throw Refused.because("no reassignment is under way");
    }
    world.decides().prefer(leader);
    reassigned(world, before, null);
    least(world);
    leads(world, leader);
  }

  /**
   * A request is sent again by NodeToControllerRequestThread after a time-out, and its later copy
   * comes first: the leader hears that it is refused, and the earlier copy is still on its way.
   */
  private static void refusesLaterCopy(World world, int leader) {
    Machine look = world.look(leader);
    boolean again =
        world.settings.operations()
            ? world.history.copies < world.settings.copies()
            : world.settings.ownView();
    if (!again
        || !look.alter.kind.equals("requested")
        || !Messages.hears(look)) {
      throw Refused.because("no request was sent again");
    }
    Machine at = world.at(leader);
    Machine.Alter earlier = at.alter.withoutHandler();
    if (!Messages.sentAgain(at) || !at.alter.request.equals(earlier.request)) {
      throw Refused.because("it does not send the same again");
    }
    AlterPartitionResponseData answer = world.decides().alter(at.alter.request);
    Errors error =
        answer == null
            ? Errors.STALE_BROKER_EPOCH
            : Errors.forCode(answer.topics().get(0).partitions().get(0).errorCode());
    if (error != Errors.INELIGIBLE_REPLICA) {
      throw Refused.because(error.name());
    }
    at.alter.answer = answer;
    Messages.tell(at, at.alter);
    at.alter = earlier;
    world.history.copies += world.settings.operations() ? 1 : 0;
  }

  private static Steps.Became fences(World world, int r, int successor) {
    boolean alive = world.look(r).process != null;
    boolean orderly = alive && world.controller().shuttingDown(r);
    boolean budget = world.history.sessionsLost < world.settings.sessionsLost();
    if (world.controller().fenced(r)) {
      throw Refused.because("it is fenced");
    }
    if (alive && !orderly && !budget) {
      throw Refused.because("beyond the model's bounds");
    }
    HeldController controller = world.decides();
    PartitionRegistration before = controller.partition();
    if (successor >= 0) {
      controller.prefer(successor);
    }
    boolean changed = orderly ? controller.relieve(r) : controller.fence(r);
    if (!changed && !(orderly && budget)) {
      throw Refused.because("nothing changes");
    }
    if (alive && !orderly) {
      world.history.sessionsLost++;
    }
    PartitionRegistration after = controller.partition();
    String is;
    if (after.partitionEpoch == before.partitionEpoch) {
      is = "controller_fences_outsider";
    } else if (after.leader == before.leader) {
      is = "controller_fences_follower";
    } else {
      is = after.leader < 0 ? "controller_fences_last_leader" : "controller_fences_leader";
    }
    String why =
        is + ", and " + (after.leader < 0 ? "nobody" : Steps.name(after.leader)) + " leads";
    if (successor >= 0 && after.leader != successor) {
      throw Refused.another(why);
    }
    return new Steps.Became(is, why);
  }

  /** A heartbeat comes only from a process that runs. */
  private static void returns(World world, int r) {
    if (world.look(r).process == null) {
      throw Refused.because("the broker does not run");
    }
  }

  private static void unfences(World world, int r) {
    returns(world, r);
    if (!world.controller().fenced(r)) {
      throw Refused.because("it is not fenced");
    }
    int before = world.controller().partition().partitionEpoch;
    String why = "it is not fenced, or it is elected";
    if (!world.decides().unfence(r)) {
      throw Refused.because(why);
    }
    if (world.controller().partition().partitionEpoch != before) {
      throw Refused.another(why);
    }
  }

  private static Steps.Became elects(World world, int r) {
    boolean fenced = world.controller().fenced(r);
    if (fenced) {
      returns(world, r);
    }
    PartitionRegistration before = world.controller().partition();
    boolean clean = clean(before, r);
    String is = clean ? "controller_elects_returned" : "controller_elects_last_known_leader";
    boolean last = before.isr.length + before.elr.length == 0 && contains(before.lastKnownElr, r);
    if (before.leader >= 0 || world.electsUnclean() && !clean && !last) {
      throw Refused.because("it is not elected so");
    }
    HeldController controller = world.decides();
    controller.prefer(r);
    boolean changed = fenced ? controller.unfence(r) : controller.elect(false);
    if (!changed || controller.partition().leader != r) {
      throw Refused.because("it is not elected so");
    }
    return new Steps.Became(is, "it is not elected so");
  }

  private static boolean clean(PartitionRegistration before, int r) {
    return contains(before.isr, r) || before.isr.length == 0 && contains(before.elr, r);
  }

  private static boolean contains(int[] ids, int id) {
    return Arrays.stream(ids).anyMatch(i -> i == id);
  }

  private static void moves(World world, int leader) {
    int before = world.controller().partition().leader;
    if (before < 0 || before == leader) {
      throw Refused.because("nobody leads, or this replica does");
    }
    HeldController controller = world.decides();
    controller.prefer(leader);
    if (!controller.elect(false) || controller.partition().leader != leader) {
      throw Refused.because("leadership does not move");
    }
  }

  private static void electsUnclean(World world, int leader) {
    PartitionRegistration before = world.controller().partition();
    if (!world.settings.unclean() || !world.unclean() || before.leader >= 0) {
      throw Refused.because("nobody wants an unclean election");
    }
    HeldController controller = world.decides();
    controller.prefer(leader);
    elected(controller.elect(true), controller, leader, before);
  }

  private static void elected(
      boolean changed, HeldController controller, int leader, PartitionRegistration before) {
    if (!changed || controller.partition().leader != leader || clean(before, leader)) {
      throw Refused.because("it is not elected so");
    }
  }

  /** Unclean elections were switched on while nobody leads: the controller looks now and then. */
  private static void electsUncleanInTime(World world, int leader) {
    PartitionRegistration before = world.controller().partition();
    if (world.settings.unclean() || before.leader >= 0) {
      throw Refused.because("nothing was switched on, or somebody leads");
    }
    HeldController controller = world.decides();
    controller.prefer(leader);
    elected(controller.electUncleanLeaders(), controller, leader, before);
  }
}
