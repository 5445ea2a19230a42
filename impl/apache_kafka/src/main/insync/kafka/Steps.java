package insync.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import insync.conform.SystemUnderTest.Step;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The actions of the model, each with the parameters that it may have and what is done for it. */
final class Steps {
  /** What is done for a step: it changes the draft, or refuses. */
  interface Taken {
    void take(World draft, Given given) throws Exception;
  }

  /** The values that a parameter may have. */
  interface Choices {
    List<Object> in(World world);
  }

  /** The parameters of one step. */
  record Given(JsonNode json) {
    int broker(String name) {
      return id(json.get(name).asText());
    }

    Set<Integer> brokers(String name) {
      Set<Integer> all = new TreeSet<>();
      json.get(name).forEach(broker -> all.add(id(broker.asText())));
      return all;
    }

    int number(String name) {
      return json.get(name).asInt();
    }
  }

  private record Action(Map<String, Choices> parameters, Taken taken) {}

  private final Map<String, Action> actions = new TreeMap<>();

  Steps() {
    ReplicaSteps.in(this);
    ControllerSteps.in(this);
    FaultSteps.in(this);
  }

  static int id(String name) {
    return Integer.parseInt(name.substring(1)) - 1;
  }

  static String name(int id) {
    return "r" + (id + 1);
  }

  /** An action whose parameters are brokers. */
  void add(String action, List<String> brokers, Taken taken) {
    Map<String, Choices> parameters = new LinkedHashMap<>();
    brokers.forEach(name -> parameters.put(name, Steps::everyBroker));
    actions.put(action, new Action(parameters, taken));
  }

  /** An action with other parameters. */
  void with(String action, Map<String, Choices> parameters, Taken taken) {
    actions.put(action, new Action(parameters, taken));
  }

  boolean has(String action) {
    return actions.containsKey(action);
  }

  void take(World draft, String action, JsonNode given) throws Exception {
    actions.get(action).taken().take(draft, new Given(given));
  }

  /** Every step with parameters that exist. */
  List<Step> candidates(World world) {
    List<Step> found = new ArrayList<>();
    actions.forEach(
        (name, action) -> {
          List<Map<String, Object>> all = List.of(Map.of());
          for (Map.Entry<String, Choices> parameter : action.parameters().entrySet()) {
            List<Map<String, Object>> longer = new ArrayList<>();
            for (Map<String, Object> before : all) {
              for (Object value : parameter.getValue().in(world)) {
                Map<String, Object> more = new LinkedHashMap<>(before);
                more.put(parameter.getKey(), value);
                longer.add(more);
              }
            }
            all = longer;
          }
          all.forEach(parameters -> found.add(new Step(name, parameters)));
        });
    return found;
  }

  static List<Object> everyBroker(World world) {
    List<Object> all = new ArrayList<>();
    for (int i = 0; i < world.size(); i++) {
      all.add(name(i));
    }
    return all;
  }

  static List<Object> everyOffset(World world) {
    List<Object> all = new ArrayList<>();
    for (int i = 0; i <= world.settings.log(); i++) {
      all.add(i);
    }
    return all;
  }

  static List<Object> everySet(World world) {
    List<Object> all = new ArrayList<>();
    for (int bits = 1; bits < 1 << world.size(); bits++) {
      List<String> members = new ArrayList<>();
      for (int i = 0; i < world.size(); i++) {
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
