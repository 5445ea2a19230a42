package insync.kafka;

import insync.conform.Refused;
import insync.conform.SystemUnderTest.Step;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * The actions of the model, each with the parameters that it may have and what is done for it.
 *
 * <p>Where Kafka decides what comes of one and the same thing (a fetch is answered, and the answer
 * may be that the logs diverge), several actions share one attempt.
 */
final class Steps {
  /** What is done for a step: it changes the draft, or refuses. */
  interface Effect {
    void take(World draft, Parameters given) throws Exception;
  }

  /** What is tried, of which Kafka decides what it is: it changes the draft, or refuses. */
  interface Trial {
    Became take(World draft, Parameters given) throws Exception;
  }

  /** Which action it was, and in a few words why it was no other. */
  record Became(String action, String why) {}

  /** The parameters of one step: a broker's name, a list of names, or a number. */
  record Parameters(Map<String, Object> values) {
    int broker(String name) {
      return id((String) values.get(name));
    }

    Set<Integer> brokers(String name) {
      Set<Integer> all = new TreeSet<>();
      ((List<?>) values.get(name)).forEach(broker -> all.add(id((String) broker)));
      return all;
    }

    int number(String name) {
      return (Integer) values.get(name);
    }

    /** The only parameter, whatever an action calls it. */
    int broker() {
      return id((String) values.values().iterator().next());
    }
  }

  /**
   * One attempt, and the actions that may come of it, each with its names for the parameters, whose
   * values are chosen from the same lists.
   */
  record Attempt(
      Map<String, List<String>> actions,
      List<Function<Settings, List<Object>>> values,
      Trial trial) {
    /** All choices of parameters that exist, each as a step of every action. */
    List<List<Step>> choices(Settings settings) {
      List<List<Object>> all = List.of(List.of());
      for (Function<Settings, List<Object>> one : values) {
        List<List<Object>> longer = new ArrayList<>();
        for (List<Object> before : all) {
          for (Object value : one.apply(settings)) {
            List<Object> more = new ArrayList<>(before);
            more.add(value);
            longer.add(more);
          }
        }
        all = longer;
      }
      return all.stream().map(this::steps).toList();
    }

    private List<Step> steps(List<Object> given) {
      List<Step> same = new ArrayList<>();
      actions.forEach(
          (action, names) -> {
            Map<String, Object> parameters = new LinkedHashMap<>();
            for (int i = 0; i < given.size(); i++) {
              parameters.put(names.get(i), given.get(i));
            }
            same.add(new Step(action, parameters));
          });
      return same;
    }
  }

  private final Map<String, Attempt> actions = new TreeMap<>();
  private final List<Attempt> attempts = new ArrayList<>();
  private final Map<Attempt, Predicate<Settings>> budgets = new HashMap<>();

  Steps() {
    ReplicaSteps.in(this);
    MetadataSteps.in(this);
    ControllerSteps.in(this);
    FaultSteps.in(this);
  }

  static int id(String name) {
    int id = 0;
    for (int i = 1; i < name.length(); i++) {
      id = 10 * id + name.charAt(i) - '0';
    }
    return id - 1;
  }

  static String name(int id) {
    return "r" + (id + 1);
  }

  /** An action whose parameters are brokers. */
  void add(String action, List<String> brokers, Effect taken) {
    add(action, brokers, Collections.nCopies(brokers.size(), Steps::everyBroker), taken);
  }

  /** An action with other parameters. */
  void add(
      String action,
      List<String> names,
      List<Function<Settings, List<Object>>> values,
      Effect taken) {
    Became became = new Became(action, "");
    Trial trial =
        (draft, given) -> {
          taken.take(draft, given);
          return became;
        };
    add(new Attempt(Map.of(action, names), values, trial));
  }

  /** Actions of which one may come of the same attempt; their parameters are brokers. */
  void any(Map<String, List<String>> actions, Trial trial) {
    int brokers = actions.values().iterator().next().size();
    add(new Attempt(actions, Collections.nCopies(brokers, Steps::everyBroker), trial));
  }

  /** The same, if they call their parameters the same. */
  void any(List<String> actions, List<String> brokers, Trial trial) {
    Map<String, List<String>> all = new LinkedHashMap<>();
    actions.forEach(action -> all.put(action, brokers));
    any(all, trial);
  }

  /** What was added last is listed as enabled only with such settings, and taken where it is asked for. */
  void listedIf(Predicate<Settings> budget) {
    budgets.put(attempts.get(attempts.size() - 1), budget);
  }

  private void add(Attempt attempt) {
    attempts.add(attempt);
    attempt.actions().keySet().forEach(action -> actions.put(action, attempt));
  }

  boolean has(String action) {
    return actions.containsKey(action);
  }

  /** Take this step in the draft, or refuse: other designs call an action so that chooses otherwise. */
  void take(World draft, Step step) throws Exception {
    Attempt attempt = actions.get(step.action());
    List<String> names = attempt.actions().get(step.action());
    if (!Set.copyOf(names).equals(step.parameters().keySet())) {
      String other = String.join(", ", step.parameters().keySet());
      throw Refused.cannot("this adapter has no " + step.action() + "(" + other + ")");
    }
    Became became = attempt.trial().take(draft, new Parameters(step.parameters()));
    if (!became.action().equals(step.action())) {
      throw Refused.another(became.why());
    }
  }

  /** What can be tried, of which some is listed as enabled only within a budget. */
  List<Attempt> attempts(Settings settings) {
    return attempts.stream()
        .filter(attempt -> budgets.getOrDefault(attempt, any -> true).test(settings))
        .toList();
  }

  static List<Object> everyBroker(Settings settings) {
    List<Object> all = new ArrayList<>();
    for (int i = 0; i < settings.replicas(); i++) {
      all.add(name(i));
    }
    return all;
  }

  static List<Object> everyOffset(Settings settings) {
    List<Object> all = new ArrayList<>();
    for (int i = 0; i <= settings.log(); i++) {
      all.add(i);
    }
    return all;
  }

  static List<Object> everyMinimum(Settings settings) {
    List<Object> all = new ArrayList<>();
    for (int i = 0; i <= settings.replicas(); i++) {
      all.add(i);
    }
    return all;
  }

  static List<Object> everySet(Settings settings) {
    List<Object> all = new ArrayList<>();
    for (int bits = 1; bits < 1 << settings.replicas(); bits++) {
      List<String> members = new ArrayList<>();
      for (int i = 0; i < settings.replicas(); i++) {
        if ((bits >> i & 1) == 1) {
          members.add(name(i));
        }
      }
      all.add(members);
    }
    return all;
  }

  /** The names of some brokers. */
  static List<String> names(Iterable<Integer> ids) {
    TreeSet<Integer> sorted = new TreeSet<>();
    ids.forEach(sorted::add);
    return sorted.stream().map(Steps::name).toList();
  }

  static List<String> names(int[] ids) {
    return names(java.util.Arrays.stream(ids).boxed().toList());
  }
}
