package insync.controllers;

import insync.conform.Refused;
import insync.conform.SystemUnderTest.Step;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import org.apache.kafka.common.errors.NotControllerException;
import org.apache.kafka.common.errors.StaleBrokerEpochException;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.protocol.Errors;

/** The model's actions of controllers, and those of brokers that a controller sees. */
final class Steps {
  private interface Taker {
    void take(World world, Step step, int... ids);
  }

  private record Action(List<String> parameters, Taker taker) {}

  private final Map<String, Action> actions = new LinkedHashMap<>();
  private final Bounds bounds;

  Steps(Bounds bounds) {
    this.bounds = bounds;
    has(
        "controller_is_elected",
        List.of("v", "q", "t"),
        (w, s, i) -> Quorum.elect(w, i[0], i[1], i[2]));
    has("leader_begins_term", List.of("c"), (w, s, i) -> Quorum.begin(w, i[0]));
    has("follower_copies_log", List.of("f", "v"), (w, s, i) -> Quorum.copy(w, i[0], i[1]));
    has("controller_commits", List.of("c", "n"), (w, s, i) -> commit(w, i[0], i[1]));
    has("controller_forgets", List.of("r"), (w, s, i) -> w.loseDisk(i[0]));
    alters("controller_accepts_alter_partition");
    alters("controller_refuses_alter_partition");
    alters("controller_rejects_stale_alter_partition");
    fences("controller_fences_outsider");
    fences("controller_fences_follower");
    fences("controller_fences_last_leader");
    has(
        "controller_fences_leader",
        List.of("controller", "r", "successor"),
        (w, s, i) -> fence(w, s.action(), i[0], i[1], i[2]));
    unfences("controller_unfences");
    unfences("controller_elects_returned");
    unfences("controller_elects_last_known_leader");
    has(
        "controller_moves_leadership",
        List.of("controller", "leader"),
        (w, s, i) -> moveLeadership(w, i[0], i[1]));
    has("controller_registers", List.of("controller", "r"), (w, s, i) -> register(w, i[0], i[1]));
    has("broker_starts", List.of("r"), (w, s, i) -> start(w, i[0]));
    has("leader_asks_again", List.of("leader"), (w, s, i) -> askAgain(w, i[0]));
  }

  private void has(String name, List<String> parameters, Taker taker) {
    actions.put(name, new Action(parameters, taker));
  }

  private void alters(String name) {
    has(name, List.of("controller", "leader"), (w, s, i) -> alter(w, name, i[0], i[1]));
  }

  private void fences(String name) {
    has(name, List.of("controller", "r"), (w, s, i) -> fence(w, name, i[0], i[1], 0));
  }

  private void unfences(String name) {
    has(name, List.of("controller", "r"), (w, s, i) -> unfence(w, name, i[0], i[1]));
  }

  List<String> names() {
    return List.copyOf(actions.keySet());
  }

  void take(World world, Step step) {
    Action action = actions.get(step.action());
    int[] ids =
        action.parameters().stream().mapToInt(name -> id(step.parameters().get(name))).toArray();
    action.taker().take(world, step, ids);
    answer(world);
  }

  private static int id(Object value) {
    return value instanceof Integer number ? number : Names.id(value);
  }

  /** Every step that may be tried. */
  List<Step> candidates() {
    List<Step> all = new ArrayList<>();
    actions.forEach(
        (name, action) -> {
          List<Map<String, Object>> found = new ArrayList<>();
          found.add(Map.of());
          for (String parameter : action.parameters()) {
            found = with(found, parameter, bounds.values(name, parameter));
          }
          found.forEach(parameters -> all.add(new Step(name, parameters)));
        });
    return all;
  }

  private static List<Map<String, Object>> with(
      List<Map<String, Object>> found, String parameter, List<Object> values) {
    List<Map<String, Object>> all = new ArrayList<>();
    for (Map<String, Object> one : found) {
      for (Object value : values) {
        Map<String, Object> more = new LinkedHashMap<>(one);
        more.put(parameter, value);
        all.add(more);
      }
    }
    return all;
  }

  // The quorum

  private static void commit(World world, int c, int n) {
    Quorum.commit(world, c, n);
    Row now = Row.of(world.controller(c), world.beginning());
    if (now.end() != n) {
      throw Refused.answer("it knows that " + now.end() + " are committed");
    }
    world.news = now.metadata().get(n - 1);
  }

  /**
   * What is answered now: an accepted AlterPartition, or that a controller is not active any more.
   */
  private static void answer(World world) {
    for (Controller controller : world.drafts()) {
      for (int leader : List.copyOf(controller.pending.keySet())) {
        CompletableFuture<AlterPartitionResponseData> answer =
            controller.pending.get(leader).answer();
        if (!answer.isDone()) {
          continue;
        }
        controller.pending.remove(leader);
        if (!(problem(answer) instanceof NotControllerException)) {
          Errors error = error(answer.join());
          if (error != Errors.NONE) {
            throw Refused.answer("what it has applied is answered with " + error);
          }
          tell(world, leader, "accepted");
        }
      }
    }
  }

  /** Who does not wait for the answer any more takes no notice of it. */
  private static void tell(World world, int leader, String answer) {
    boolean hears =
        world.modelHas("alive", leader)
            && world.model("leader", leader).asText().equals(Names.broker(leader))
            && world.model("leader_epoch", leader).equals(world.model("alter_leader_epoch", leader))
            && world
                .model("partition_epoch", leader)
                .equals(world.model("alter_partition_epoch", leader));
    world.replies.put(leader, hears ? answer : "none");
  }

  // Decisions

  /** What an active controller is asked for: it appends one batch, or none. */
  private static <T extends CompletableFuture<?>> Decision<T> decision(
      World world, int c, Function<Controller, T> request) {
    Controller controller = world.controller(c);
    if (world.row(c).log().isEmpty()) {
      throw Refused.answer("it has no metadata");
    }
    int before = controller.disk.batches().size();
    T answer;
    try {
      answer = request.apply(controller);
    } catch (NotControllerException problem) {
      throw Refused.answer("NOT_CONTROLLER");
    }
    controller.client.rest();
    Throwable problem = problem(answer);
    if (problem instanceof NotControllerException) {
      throw Refused.answer("NOT_CONTROLLER");
    }
    if (problem instanceof StaleBrokerEpochException) {
      throw Refused.cannot("it knows another incarnation of that broker: STALE_BROKER_EPOCH");
    }
    int written = controller.disk.batches().size() - before;
    if (written > 1) {
      throw new IllegalStateException(written + " batches are written by one request");
    }
    if (written == 0 && problem != null) {
      throw Refused.answer("it answers " + problem);
    }
    Row now = Row.of(controller, world.beginning());
    return new Decision<>(answer, written == 1, world.row(c).last(), now.last(), now.log().size());
  }

  /** The answer, whether anything was written, and the metadata before and after that. */
  private record Decision<T>(T answer, boolean writes, Metadata old, Metadata now, int end) {
    boolean keepsPartition() {
      return old.partitionEpoch() == now.partitionEpoch();
    }
  }

  /** The error that it is answered with; null if it is not, or not yet. */
  private static Throwable problem(CompletableFuture<?> answer) {
    if (!answer.isCompletedExceptionally()) {
      return null;
    }
    Throwable problem = answer.handle((a, thrown) -> thrown).join();
    return problem instanceof CompletionException ? problem.getCause() : problem;
  }

  private static Errors error(AlterPartitionResponseData answer) {
    short all = answer.errorCode();
    return Errors.forCode(all != 0 ? all : answer.topics().get(0).partitions().get(0).errorCode());
  }

  private static void alter(World world, String action, int c, int leader) {
    if (!world.model("alter", leader).asText().equals("requested")
        || world.holder(leader) != null) {
      throw Refused.because("no such request is on its way");
    }
    if (world.row(c).term() < world.model("alter_term", leader).asInt()) {
      throw Refused.because("the broker has asked a later controller");
    }
    var decision = decision(world, c, controller -> send(world, controller, leader));
    if (!decision.answer().isDone()) {
      if (!decision.writes()) {
        throw Refused.because("it answers when what is before it is committed");
      }
      world
          .controller(c)
          .pending
          .put(leader, new Controller.Pending(decision.answer(), decision.end()));
      expect(action, "controller_accepts_alter_partition");
      return;
    }
    switch (error(decision.answer().join())) {
      case NOT_CONTROLLER -> throw Refused.answer("the request is ahead of it: NOT_CONTROLLER");
      case INELIGIBLE_REPLICA -> {
        tell(world, leader, "refused");
        expect(action, "controller_refuses_alter_partition");
      }
      case FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST -> {
        world.replies.put(leader, "none");
        expect(action, "controller_rejects_stale_alter_partition");
      }
      default -> throw Refused.answer("it answers " + error(decision.answer().join()));
    }
  }

  private static void expect(String action, String does) {
    if (!action.equals(does)) {
      throw Refused.answer("it is " + does);
    }
  }

  private static CompletableFuture<AlterPartitionResponseData> send(
      World world, Controller controller, int leader) {
    Metadata known = world.row(controller.id).last();
    Map<Integer, Long> members = new LinkedHashMap<>();
    for (int broker = 1; broker <= world.brokers(); broker++) {
      if (has(world, "alter_isr", leader, broker)) {
        boolean joins = !has(world, "isr", leader, broker);
        int incarnation = world.model("alter_broker_epoch", leader).asInt();
        members.put(broker, joins ? brokerEpoch(world, known, broker, incarnation) : -1L);
      }
    }
    return controller.process.alters(
        world.news.topic(),
        leader,
        brokerEpoch(world, known, leader, world.model("broker_epoch", leader).asInt()),
        world.model("alter_leader_epoch", leader).asInt(),
        world.model("alter_partition_epoch", leader).asInt(),
        members);
  }

  private static boolean has(World world, String variable, int leader, int broker) {
    for (var name : world.model(variable, leader)) {
      if (name.asText().equals(Names.broker(broker))) {
        return true;
      }
    }
    return false;
  }

  /** The broker epoch of an incarnation, as this controller or else the brokers know it. */
  private static long brokerEpoch(World world, Metadata known, int broker, int incarnation) {
    for (Metadata metadata : List.of(known, world.news)) {
      List<Long> epochs = metadata.registrations().getOrDefault(broker, List.of());
      if (incarnation < epochs.size()) {
        return epochs.get(incarnation);
      }
    }
    throw Refused.cannot("no controller knows the epoch of that incarnation any more");
  }

  private void fence(World world, String action, int c, int r, int successor) {
    Metadata old = world.row(c).last();
    boolean lives = world.modelHas("alive", r);
    if (old == null || old.fenced().contains(r)) {
      throw Refused.because("it has no session");
    }
    if (lives && world.model("sessions_lost") >= bounds.of("sessions_lost")) {
      throw Refused.because("its session lasts");
    }
    var decision =
        decision(
            world,
            c,
            controller -> {
              endSession(world, controller, r);
              if (!controller.process.fencesStaleBroker()) {
                throw Refused.answer("it looks after no session");
              }
              return CompletableFuture.completedFuture(null);
            });
    if (!decision.writes()) {
      throw Refused.answer("it fences nobody");
    }
    Integer led = decision.old().leader();
    Integer leads = decision.now().leader();
    if (led == null || led != r) {
      boolean member = decision.old().isr().contains(r);
      expect(action, member ? "controller_fences_follower" : "controller_fences_outsider");
    } else if (leads == null) {
      expect(action, "controller_fences_last_leader");
    } else {
      expect(action, "controller_fences_leader");
      if (leads != successor) {
        throw Refused.cannot("it elects in the order of assignment");
      }
    }
  }

  /** It is long ago that this broker was heard, and all others were heard since. */
  private static void endSession(World world, Controller controller, int r) {
    controller.process.sessionsEnd();
    for (int other = 1; other <= world.brokers(); other++) {
      boolean isFenced = world.row(controller.id).last().fenced().contains(other);
      if (other != r && !isFenced) {
        heartbeat(world, controller, other);
      }
    }
  }

  private static CompletableFuture<?> heartbeat(World world, Controller controller, int r) {
    List<Long> epochs = world.row(controller.id).last().registrations().get(r);
    return controller.process.heartbeat(r, epochs.get(epochs.size() - 1));
  }

  private static void unfence(World world, String action, int c, int r) {
    if (!world.modelHas("alive", r)) {
      throw Refused.because("it is down");
    }
    var decision = decision(world, c, controller -> heartbeat(world, controller, r));
    if (!decision.writes()) {
      throw Refused.answer("its heartbeat changes nothing");
    }
    Metadata old = decision.old();
    if (decision.keepsPartition()) {
      expect(action, "controller_unfences");
    } else if (old.isr().isEmpty() && old.elr().isEmpty()) {
      expect(action, "controller_elects_last_known_leader");
    } else {
      expect(action, "controller_elects_returned");
    }
  }

  private static void moveLeadership(World world, int c, int leader) {
    var decision = decision(world, c, controller -> controller.process.electsPreferred());
    if (!decision.writes() || decision.now().leader() != leader) {
      throw Refused.cannot("it elects the preferred replica only");
    }
  }

  private void register(World world, int c, int r) {
    Metadata old = world.row(c).last();
    if (world.modelHas("alive", r) || old == null || !old.fenced().contains(r)) {
      throw Refused.because("it does not start now");
    }
    int incarnation = old.incarnations().get(r);
    if (incarnation != world.model("broker_epoch", r).asInt()) {
      throw Refused.because("it has registered");
    }
    var decision =
        decision(
            world,
            c,
            controller -> {
              endSession(world, controller, r);
              return controller.process.registers(r, incarnation + 1);
            });
    if (!decision.writes()) {
      throw Refused.answer("it registers nobody");
    }
  }

  // Brokers

  private static void start(World world, int r) {
    int incarnation = world.model("broker_epoch", r).asInt();
    if (world.modelHas("alive", r) || world.news.incarnations().get(r) != incarnation + 1) {
      throw Refused.because("it has not registered");
    }
    drop(world, r);
    world.replies.put(r, "none");
  }

  private static void askAgain(World world, int leader) {
    if (world.holder(leader) == null) {
      throw Refused.because("nobody has its request");
    }
    drop(world, leader);
  }

  /** Whoever has the broker's request will not find it at the other end. */
  private static void drop(World world, int broker) {
    Integer holder = world.holder(broker);
    if (holder != null) {
      world.controller(holder).pending.remove(broker);
    }
  }
}
