package insync.conform;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import insync.conform.SystemUnderTest.Outcome;
import insync.conform.SystemUnderTest.Step;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The protocol of docs/conform.md over standard input and output: one JSON object a line, one
 * answer each.
 *
 * @param <W> the worlds of the system
 */
public final class Conversation<W> {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** A world that was saved or is here, with what is known to come of steps from it. */
  private static final class Place<W> {
    final W world;
    Map<Step, Outcome<W>> after = Map.of();

    Place(W world) {
      this.world = world;
    }
  }

  private final SystemUnderTest<W> system;
  private final Map<Integer, Place<W>> places = new HashMap<>();
  private int tokens;
  private Place<W> here;

  /** A conversation about one system. */
  public Conversation(SystemUnderTest<W> system) {
    this.system = system;
  }

  /**
   * Answer every line of standard input until it ends; whatever else is printed goes to standard
   * error.
   */
  public void run() throws IOException {
    System.setOut(System.err);
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
    PrintStream out =
        new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.write(JSON.writeValueAsBytes(answer(line)));
      out.write('\n');
      out.flush();
    }
  }

  /** The answer to one line. */
  Map<String, Object> answer(String line) {
    try {
      return handle(JSON.readTree(line));
    } catch (Exception | LinkageError | AssertionError | StackOverflowError problem) {
      problem.printStackTrace();
      return Map.of("error", String.valueOf(problem));
    }
  }

  private Map<String, Object> handle(JsonNode request) throws Exception {
    if (request.has("surroundings")) {
      here = new Place<>(system.amid(here.world, request.get("surroundings")));
    }
    switch (request.path("do").asText()) {
      case "hello":
        return hello(request.get("constants"));
      case "reset":
        places.clear();
        here = new Place<>(system.reset(request.get("state")));
        return Map.of();
      case "step":
        return step(step(request));
      case "snapshot":
        return Map.of("state", system.snapshot(here.world));
      case "enabled":
        return Map.of("enabled", enabled(here));
      case "save":
        return Map.of("token", save(here));
      case "restore":
        here = places.get(request.get("token").asInt());
        return Map.of();
      case "forget":
        places.remove(request.get("token").asInt());
        return Map.of();
      case "branch":
        return branch(request);
      default:
        return Map.of("error", "no request of this protocol: " + request.path("do").asText());
    }
  }

  private Map<String, Object> hello(JsonNode constants) {
    SystemUnderTest.Greeting greeting = system.hello(constants);
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("protocol", "insync/conform/1");
    answer.put("name", greeting.name());
    if (greeting.surroundings() == null) {
      answer.put("saves", true);
      answer.put("forgets", true);
      answer.put("branches", true);
    } else {
      answer.put("surroundings", greeting.surroundings());
    }
    answer.put("enabled", greeting.enabled());
    if (greeting.variables() != null) {
      answer.put("variables", greeting.variables());
    }
    if (greeting.actions() != null) {
      answer.put("actions", greeting.actions());
    }
    return answer;
  }

  private int save(Place<W> place) {
    places.put(++tokens, place);
    return tokens;
  }

  private Map<String, Object> step(Step step) throws Exception {
    Outcome<W> outcome = after(here, step);
    if (outcome.refusal() == null) {
      here = new Place<>(outcome.world());
    }
    return answerTo(outcome);
  }

  private Map<String, Object> answerTo(Outcome<W> outcome) throws Exception {
    Refused refused = outcome.refusal();
    Map<String, Object> answer = new LinkedHashMap<>();
    if (refused == null) {
      answer.put("done", true);
    } else if (refused.isUndriven()) {
      answer.put("cannot", refused.getMessage());
    } else {
      answer.put("done", false);
      answer.put("why", refused.getMessage());
      if (outcome.world() != null) {
        answer.put("instead", system.snapshot(outcome.world()));
      }
    }
    return answer;
  }

  private Outcome<W> after(Place<W> place, Step step) throws Exception {
    Outcome<W> known = place.after.get(step);
    return known != null ? known : system.outcome(place.world, step);
  }

  private List<Step> enabled(Place<W> place) throws Exception {
    place.after = system.outcomes(place.world);
    List<Step> found = new ArrayList<>();
    place.after.forEach(
        (step, outcome) -> {
          Refused refused = outcome.refusal();
          if (refused == null ? system.within(outcome.world()) : refused.isFailure()) {
            found.add(step);
          }
        });
    return found;
  }

  /** From a saved place: what is enabled there, and what comes of some steps, each from there. */
  private Map<String, Object> branch(JsonNode request) throws Exception {
    Place<W> place = places.get(request.get("token").asInt());
    request.path("forget").forEach(token -> places.remove(token.asInt()));
    Map<String, Object> answer = new LinkedHashMap<>();
    if (request.path("enabled").asBoolean()) {
      answer.put("enabled", enabled(place));
    }
    List<Object> all = new ArrayList<>();
    for (JsonNode asked : request.get("steps")) {
      Outcome<W> outcome = after(place, step(asked));
      Map<String, Object> one = answerTo(outcome);
      if (outcome.refusal() == null) {
        one.put("state", system.snapshot(outcome.world()));
        if (asked.path("save").asBoolean()) {
          one.put("token", save(new Place<>(outcome.world())));
        }
      }
      all.add(one);
    }
    place.after = Map.of();
    answer.put("after", all);
    return answer;
  }

  private static Step step(JsonNode json) {
    Map<String, Object> parameters = new LinkedHashMap<>();
    json.get("parameters")
        .properties()
        .forEach(p -> parameters.put(p.getKey(), value(p.getValue())));
    return new Step(json.get("action").asText(), parameters);
  }

  private static Object value(JsonNode json) {
    if (json.isArray()) {
      List<Object> all = new ArrayList<>();
      json.forEach(item -> all.add(value(item)));
      return all;
    }
    return json.isInt() ? json.intValue() : json.isBoolean() ? json.booleanValue() : json.asText();
  }
}
