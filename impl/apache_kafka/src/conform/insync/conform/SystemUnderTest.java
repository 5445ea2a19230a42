package insync.conform;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An implementation that insync drives along the edges of its model (docs/conform.md), one world at
 * a time as a value.
 *
 * <p>A step gives a new world and leaves the old one as it was, so any world can be gone back to
 * and states need not be reached again from a reset. {@link Conversation} does the talking.
 *
 * @param <W> everything that a step can change, messages on their way included
 */
public interface SystemUnderTest<W> {
  /**
   * What the system says of itself; {@code constants} are the model's bounds and settings by name.
   */
  Greeting hello(JsonNode constants);

  /** A fresh world in this initial state of the model. */
  W reset(JsonNode state) throws Exception;

  /** The world after this step; {@link Refused} if the system does not take it. */
  W step(W world, Step step) throws Exception;

  /** The world where the model has these values of its surroundings, before the next request. */
  default W amid(W world, JsonNode values) throws Exception {
    return world;
  }

  /** The variables of the model that the system tells, by name. */
  Map<String, Object> snapshot(W world) throws Exception;

  /**
   * Every step that may be tried; those that are not refused are what is enabled. Empty if that is
   * not told.
   */
  default List<Step> candidates() {
    return List.of();
  }

  /**
   * What comes of every candidate. A system that finds out in one attempt which of several steps
   * can be taken says so here.
   */
  default Map<Step, Outcome<W>> outcomes(W world) throws Exception {
    Map<Step, Outcome<W>> all = new LinkedHashMap<>();
    for (Step step : candidates()) {
      all.put(step, outcome(world, step));
    }
    return all;
  }

  /** What comes of one step. */
  default Outcome<W> outcome(W world, Step step) throws Exception {
    try {
      return new Outcome<>(step(world, step), null);
    } catch (Refused refused) {
      return new Outcome<>(null, refused);
    }
  }

  /**
   * Whether a world is within the model's bounds; a step that leaves them is not told as enabled.
   */
  default boolean within(W world) {
    return true;
  }

  /**
   * A name of its own, and what it tells and has; null for everything that the model has. {@code
   * surroundings}: the variables of which it is told what the model has, as the rest of the model
   * is taken without it; null for a system that is the whole of the model.
   */
  record Greeting(
      String name,
      List<String> variables,
      List<String> actions,
      boolean enabled,
      List<String> surroundings) {
    /** A system that is the whole of the model. */
    public Greeting(String name, List<String> variables, List<String> actions, boolean enabled) {
      this(name, variables, actions, enabled, null);
    }
  }

  /**
   * One step as the model names it; a parameter is a name, a number, true or false, or a list of
   * them.
   */
  record Step(String action, Map<String, Object> parameters) {}

  /**
   * The world after a step, or why there is none; with both, the world after the step that the
   * system took in its place.
   */
  record Outcome<W>(W world, Refused refusal) {}
}
