package insync.found.likely;

import insync.found.Story;
import insync.found.brokers.Rolling;
import java.time.Duration;

/**
 * How often does a leader skip an epoch? Three brokers, many partitions, a producer with acks=all,
 * one broker after the other restarted in order, and preferred elections after each: nothing is
 * delayed.
 */
public final class RollingRestarts {
  private RollingRestarts() {}

  /** Arguments: partitions, minutes, records a second, how often each broker in a row. */
  public static void main(String[] arguments) throws Exception {
    int partitions = Integer.parseInt(arguments[0]);
    Duration time = Duration.ofSeconds((long) (60 * Double.parseDouble(arguments[1])));
    int rate = Integer.parseInt(arguments[2]);
    try (Rolling rolling = new Rolling(partitions)) {
      rolling.run(time, rate, Integer.parseInt(arguments[3]));
    }
    Story.step("done");
    System.exit(0);
  }
}
