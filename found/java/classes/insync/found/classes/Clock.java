package insync.found.classes;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** Time that goes by only when the scenario says so. */
public final class Clock implements Time {
  private long now = 1_000_000;

  @Override
  public long milliseconds() {
    return now;
  }

  @Override
  public long nanoseconds() {
    return now * 1_000_000;
  }

  @Override
  public void sleep(long milliseconds) {
    now += milliseconds;
  }

  /** Abstract in Kafka 4.3, a default method in 4.4; nothing here waits. */
  public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
    throw new UnsupportedOperationException();
  }
}
