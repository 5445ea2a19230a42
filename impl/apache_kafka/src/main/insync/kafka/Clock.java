package insync.kafka;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;

/** A clock that goes when the adapter says so. */
public final class Clock implements Time {
  /** Milliseconds. */
  public long now = 1_000_000;

  @Override
  public long milliseconds() {
    return now;
  }

  @Override
  public long hiResClockMs() {
    return now;
  }

  @Override
  public long nanoseconds() {
    return now * 1_000_000;
  }

  @Override
  public void sleep(long ms) {
    now += ms;
  }

  @Override
  public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
    throw new IllegalStateException("nothing waits here");
  }

  @Override
  public Timer timer(long timeout) {
    return Time.SYSTEM.timer(timeout);
  }
}
