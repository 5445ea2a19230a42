package insync.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import insync.conform.Conversation;
import insync.conform.Refused;
import insync.conform.SystemUnderTest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.metadata.PartitionRegistration;

/** Apache Kafka's own classes behind the protocol of docs/conform.md. */
public final class Main implements SystemUnderTest<World> {
  private final Steps steps = new Steps();
  private Settings settings;

  /**
   * Every attempt with every choice of parameters, as a step of each action that may come of it.
   */
  private final Map<Steps.Attempt, List<List<Step>>> choices = new LinkedHashMap<>();

  public static void main(String[] arguments) throws Exception {
    try {
      new Conversation<>(new Main()).run();
    } catch (Throwable problem) { // Kafka's threads would keep the process
      problem.printStackTrace();
      System.exit(1);
    }
    System.err.println("expansions in which the leader's view was set: " + Steering.overrides);
    System.exit(0);
  }

  @Override
  public Greeting hello(JsonNode constants) {
    settings = Settings.of(constants);
    choices.clear();
    steps.attempts(settings).forEach(attempt -> choices.put(attempt, attempt.choices(settings)));
    return new Greeting(
        "Apache Kafka " + Parts.VERSION, null, null, !Boolean.getBoolean("insync.no-enabled"));
  }

  @Override
  public World reset(JsonNode state) throws Exception {
    List<Integer> replicas = new ArrayList<>();
    for (int i = 0; i < settings.replicas(); i++) {
      replicas.add(i);
    }
    if (state.has("replicas")) {
      replicas.clear();
      state.get("replicas").forEach(name -> replicas.add(Steps.id(name.asText())));
    }
    return new World(settings, Steps.id(state.get("controller_leader").asText()), replicas);
  }

  @Override
  public World step(World world, Step step) throws Exception {
    Outcome<World> outcome = outcome(world, step);
    if (outcome.refusal() != null) {
      throw outcome.refusal();
    }
    return outcome.world();
  }

  @Override
  public Outcome<World> outcome(World world, Step step) throws Exception {
    if (!steps.has(step.action())) {
      return new Outcome<>(null, Refused.cannot("this adapter has no " + step.action()));
    }
    PartitionRegistration before = world.controller().partition();
    World draft = world.draft();
    Outcome<World> outcome;
    try {
      steps.take(draft, step);
      draft.settle();
      outcome = new Outcome<>(draft, null);
    } catch (Refused refused) {
      outcome = ofRefusal(world, draft, refused);
    } catch (Exception | LinkageError | StackOverflowError problem) {
      outcome = new Outcome<>(null, RefusedStep.failure(problem));
    }
    return ruling(before, outcome);
  }

  /** The same, or a refusal where the step says something else of recovery than it should. */
  private static Outcome<World> ruling(PartitionRegistration before, Outcome<World> outcome) {
    World after = outcome.world();
    Refused fault =
        after == null ? null : Recovery.fault(before, after.controller().partition());
    return fault == null ? outcome : new Outcome<>(null, fault);
  }

  /** A refusal that left something is none, and another step is told with what it left. */
  private static Outcome<World> ofRefusal(World world, World draft, Refused refused) {
    if (refused.isAnother()) {
      draft.settle();
      return new Outcome<>(draft, refused);
    }
    boolean taken = refused.isAnswer() && RefusedStep.changes(world, draft);
    return taken ? new Outcome<>(draft, null) : new Outcome<>(null, refused);
  }

  @Override
  public Map<Step, Outcome<World>> outcomes(World world) throws Exception {
    Map<Step, Outcome<World>> all = new HashMap<>();
    for (Map.Entry<Steps.Attempt, List<List<Step>>> entry : choices.entrySet()) {
      for (List<Step> same : entry.getValue()) {
        attempt(world, entry.getKey(), same, all);
      }
    }
    return all;
  }

  /** Steps that one attempt decides. */
  private static void attempt(
      World world, Steps.Attempt attempt, List<Step> same, Map<Step, Outcome<World>> all)
      throws Exception {
    PartitionRegistration before = world.controller().partition();
    World draft = world.draft();
    Outcome<World> not;
    String is = "";
    try {
      Steps.Became became =
          attempt.trial().take(draft, new Steps.Parameters(same.get(0).parameters()));
      draft.settle();
      is = became.action();
      not = new Outcome<>(draft, Refused.another(became.why()));
    } catch (Refused refused) {
      not = ofRefusal(world, draft, refused);
      if (not.refusal() == null) {
        not = new Outcome<>(null, refused);
        is = same.get(0).action();
      }
    } catch (Exception | LinkageError | StackOverflowError problem) {
      not = new Outcome<>(null, RefusedStep.failure(problem));
    }
    Outcome<World> taken = ruling(before, new Outcome<>(draft, null));
    not = ruling(before, not);
    for (Step step : same) {
      all.put(step, step.action().equals(is) ? taken : not);
    }
  }

  @Override
  public boolean within(World world) {
    return world.within();
  }

  @Override
  public Map<String, Object> snapshot(World world) {
    return Snapshot.of(world);
  }
}
