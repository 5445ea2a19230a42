package insync.found;

/** What happened, told line by line on standard output. */
public final class Story {
  /** Exit code: an acknowledged record is not in the log of the partition's leader. */
  public static final int LOST = 1;

  /** Exit code: no acknowledged record is missing. */
  public static final int HELD = 0;

  /** Exit code: the steps could not be taken, so nothing was learnt. */
  public static final int NOT_TRIED = 2;

  private static final long START = System.nanoTime();

  private Story() {}

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

  /** The last line: what became of the record. Returns the exit code. */
  public static int verdict(boolean acknowledged, boolean held, String where) {
    if (acknowledged && !held) {
      step("LOST: the record was acknowledged with acks=all and is not in %s", where);
      return LOST;
    }
    if (acknowledged) {
      step("HELD: the record was acknowledged and is in %s", where);
    } else {
      step("HELD: the record was not acknowledged, so nothing was promised; its producer is told");
    }
    return HELD;
  }
}
