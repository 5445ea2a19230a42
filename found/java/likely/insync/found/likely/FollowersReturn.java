package insync.found.likely;

import insync.found.Story;
import insync.found.brokers.Rolling;
import java.time.Duration;

/**
 * How often does a leader forget a proposal? Three brokers, some controllers, many partitions, a
 * producer with acks=all, and one with acks=1 if that is asked for. Two brokers at a time are
 * stopped in order and started again, and come back: nothing is delayed.
 */
public final class FollowersReturn {
  private FollowersReturn() {}

  /** Arguments: controllers, partitions, minutes, records a second, those with acks=1. */
  public static void main(String[] arguments) throws Exception {
    int controllers = Integer.parseInt(arguments[0]);
    int partitions = Integer.parseInt(arguments[1]);
    Duration time = Duration.ofSeconds((long) (60 * Double.parseDouble(arguments[2])));
    try (Rolling rolling = new Rolling(partitions, controllers)) {
      rolling.runInPairs(time, Integer.parseInt(arguments[3]), Integer.parseInt(arguments[4]));
    }
    Story.step("done");
    System.exit(0);
  }
}
