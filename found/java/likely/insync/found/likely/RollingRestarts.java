package insync.found.likely;

import insync.found.Story;
import insync.found.brokers.Rolling;
import java.time.Duration;

/**
 * How often does a leader skip an epoch? Three brokers, some controllers, many partitions, a
 * producer with acks=all, one broker after the other restarted in order, and preferred elections
 * after each: nothing is delayed.
 */
public final class RollingRestarts {
  private RollingRestarts() {}

  /** Arguments: controllers, partitions, minutes, records a second, how often each broker in a row. */
  public static void main(String[] arguments) throws Exception {
    int controllers = Integer.parseInt(arguments[0]);
    int partitions = Integer.parseInt(arguments[1]);
    Duration time = Duration.ofSeconds((long) (60 * Double.parseDouble(arguments[2])));
    int rate = Integer.parseInt(arguments[3]);
    try (Rolling rolling = new Rolling(partitions, controllers)) {
      rolling.run(time, rate, Integer.parseInt(arguments[4]));
    }
    Story.step("done");
    System.exit(0);
  }
}
