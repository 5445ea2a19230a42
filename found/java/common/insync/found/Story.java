package insync.found;

import java.util.List;

/** What happened, told line by line on standard output; the last line is the verdict. */
public final class Story {
  /**
   * What became of the record. A JVM ends by itself with 0, 1, 3, or 128 and a signal: never with
   * one of these codes.
   */
  public enum Outcome {
    /** An acknowledged record is not in the log of the partition's leader. */
    LOST(41),
    /** No acknowledged record is missing. */
    HELD(42),
    /** The steps could not be taken, so nothing was learnt. */
    NOT_TRIED(43);

    /** The exit code. */
    public final int code;

    Outcome(int code) {
      this.code = code;
    }
  }

  /** What happens. */
  public interface Scenario {
    /** Takes the steps; {@link NotTried} where one cannot be taken. */
    Outcome run(boolean control) throws Exception;
  }

  private static final long START = System.nanoTime();

  private Story() {}

  /**
   * The whole program: the scenario, with --control if it is among the arguments, and as its last
   * act a line in JSON, with which the JVM ends. Whatever else is thrown ends it without that line,
   * which is no verdict.
   */
  public static void play(Class<?> story, String[] arguments, Scenario scenario) throws Exception {
    boolean control = List.of(arguments).contains("--control");
    Outcome outcome;
    try {
      outcome = scenario.run(control);
    } catch (NotTried problem) {
      step("NOT TRIED: %s", problem.getMessage());
      outcome = Outcome.NOT_TRIED;
    }
    String name = story.getName();
    System.out.printf(
        "verdict: {\"outcome\": \"%s\", \"story\": \"%s\", \"control\": %b, \"release\": \"%s\"}%n",
        outcome, name, control, AppInfo.version());
    System.out.flush();
    System.exit(outcome.code);
  }

  /** One step of the scenario, with the seconds since the start. */
  public static synchronized void step(String format, Object... values) {
    double seconds = (System.nanoTime() - START) / 1e9;
    System.out.printf("[%6.2f s] %s%n", seconds, String.format(format, values));
    System.out.flush();
  }

  /** Something that a step made visible. */
  public static synchronized void detail(String format, Object... values) {
    System.out.printf("             %s%n", String.format(format, values));
    System.out.flush();
  }

  /** The last step: what became of the record. */
  public static Outcome outcome(boolean acknowledged, boolean held, String where) {
    if (acknowledged && !held) {
      step("LOST: the record was acknowledged with acks=all and is not in %s", where);
      return Outcome.LOST;
    }
    if (acknowledged) {
      step("HELD: the record was acknowledged and is in %s", where);
    } else {
      step("HELD: the record was not acknowledged, so nothing was promised; its producer is told");
    }
    return Outcome.HELD;
  }
}
