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
    if (!steps.has(step.action())) {
      throw Refused.cannot("this adapter has no " + step.action());
    }
    World draft = world.draft();
    try {
      steps.take(draft, step);
    } catch (Refused refused) {
      if (!refused.isAnswer() || !RefusedStep.changes(world, draft)) {
        throw refused;
      }
    } catch (Exception | LinkageError | StackOverflowError problem) {
      throw RefusedStep.failure(problem);
    }
    draft.settle();
    return draft;
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
    World draft = world.draft();
    Outcome<World> not;
    String is = "";
    try {
      Steps.Became became =
          attempt.trial().take(draft, new Steps.Parameters(same.get(0).parameters()));
      draft.settle();
      is = became.action();
      not = new Outcome<>(null, Refused.because(became.why()));
    } catch (Refused refused) {
      not = new Outcome<>(null, refused);
      if (refused.isAnswer() && RefusedStep.changes(world, draft)) {
        is = same.get(0).action();
      }
    } catch (Exception | LinkageError | StackOverflowError problem) {
      not = new Outcome<>(null, RefusedStep.failure(problem));
    }
    for (Step step : same) {
      all.put(step, step.action().equals(is) ? new Outcome<>(draft, null) : not);
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
