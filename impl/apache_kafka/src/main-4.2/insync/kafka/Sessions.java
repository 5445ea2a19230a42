package insync.kafka;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.FetchManager;
import org.apache.kafka.server.FetchSessionCacheShard;

/** FetchManager, made; until 4.2. */
final class Sessions {
  private Sessions() {}

  static FetchManager manager(Time time, FetchSessionCacheShard sessions) {
    return new FetchManager(time, sessions);
  }
}
