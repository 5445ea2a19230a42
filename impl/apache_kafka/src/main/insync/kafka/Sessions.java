package insync.kafka;

import java.util.List;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.FetchManager;
import org.apache.kafka.server.FetchSession;
import org.apache.kafka.server.FetchSessionCacheShard;

/** FetchManager, made; since 4.3. */
final class Sessions {
  private Sessions() {}

  static FetchManager manager(Time time, FetchSessionCacheShard sessions) {
    return new FetchManager(time, new FetchSession.FetchSessionCache(List.of(sessions)));
  }
}
