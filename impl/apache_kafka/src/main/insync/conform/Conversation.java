package insync.conform;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
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

  /** A world that was saved or is here, with the worlds that are known to follow it. */
  private static final class Place<W> {
    final W world;
    final Map<String, Object> after = new HashMap<>();

    Place(W world) {
      this.world = world;
    }
  }

  private final SystemUnderTest<W> system;
  private final Map<Integer, Place<W>> saved = new HashMap<>();
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
      out.print(JSON.writeValueAsString(answer(line)) + "\n");
      if (!in.ready()) {
        out.flush();
      }
    }
    out.flush();
  }

  /** The answer to one line. */
  Map<String, Object> answer(String line) {
    try {
      return handle(JSON.readTree(line));
    } catch (Exception | LinkageError | AssertionError problem) {
      problem.printStackTrace();
      return Map.of("error", String.valueOf(problem));
    }
  }

  private Map<String, Object> handle(JsonNode request) throws Exception {
    switch (request.path("do").asText()) {
      case "hello":
        return hello(request.get("constants"));
      case "reset":
        saved.clear();
        here = new Place<>(system.reset(request.get("state")));
        return Map.of();
      case "step":
        return step(request.get("action").asText(), request.get("parameters"));
      case "snapshot":
        return Map.of("state", system.snapshot(here.world));
      case "enabled":
        return Map.of("enabled", enabled());
      case "save":
        saved.put(++tokens, here);
        return Map.of("token", tokens);
      case "restore":
        here = saved.get(request.get("token").asInt());
        return Map.of();
      case "forget":
        saved.remove(request.get("token").asInt());
        return Map.of();
      default:
        return Map.of("error", "no request of this protocol: " + request.path("do").asText());
    }
  }

  private Map<String, Object> hello(JsonNode constants) {
    SystemUnderTest.Greeting greeting = system.hello(constants);
    Map<String, Object> said = new LinkedHashMap<>();
    said.put("protocol", "insync/conform/1");
    said.put("name", greeting.name());
    said.put("saves", true);
    said.put("forgets", true);
    said.put("enabled", greeting.enabled());
    if (greeting.variables() != null) {
      said.put("variables", greeting.variables());
    }
    if (greeting.actions() != null) {
      said.put("actions", greeting.actions());
    }
    return said;
  }

  private Map<String, Object> step(String action, JsonNode parameters) throws Exception {
    Object after = after(action, parameters);
    if (after instanceof Refused refused) {
      return refused.cannot
          ? Map.of("cannot", refused.getMessage())
          : Map.of("done", false, "why", refused.getMessage());
    }
    @SuppressWarnings("unchecked")
    Place<W> next = (Place<W>) after;
    here = next;
    return Map.of("done", true);
  }

  /** The place after a step from here, or why there is none; both are remembered. */
  private Object after(String action, JsonNode parameters) throws Exception {
    String key = action + parameters;
    Object known = here.after.remove(key);
    if (known != null) {
      return known;
    }
    try {
      return new Place<>(system.step(here.world, action, parameters));
    } catch (Refused refused) {
      return refused;
    }
  }

  @SuppressWarnings("unchecked")
  private boolean within(Place<?> place) {
    return system.within((W) place.world);
  }

  private List<SystemUnderTest.Step> enabled() throws Exception {
    List<SystemUnderTest.Step> found = new ArrayList<>();
    for (SystemUnderTest.Step step : system.candidates(here.world)) {
      JsonNode parameters = JSON.valueToTree(step.parameters());
      Object after = after(step.action(), parameters);
      here.after.put(step.action() + parameters, after);
      if (after instanceof Place<?> place && within(place)) {
        found.add(step);
      }
    }
    return found;
  }
}
