package insync.found.fix;

import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.metadata.BrokerRegistration;

/**
 * ClusterControlManager.registerBroker takes a broker for one that stopped uncleanly where it lacks
 * a log directory which it had when it registered before. Today the mark of a clean shutdown in the
 * directories that are left is enough.
 */
public final class MarkOfAllDirectories {
  private MarkOfAllDirectories() {}

  /** The request then names no earlier epoch. */
  @Advice.OnMethodEnter
  public static void enter(
      @Advice.FieldValue("brokerRegistrations") Map<Integer, BrokerRegistration> registrations,
      @Advice.Argument(0) BrokerRegistrationRequestData request) {
    BrokerRegistration before = registrations.get(request.brokerId());
    if (before != null && !request.logDirs().containsAll(before.directories())) {
      request.setPreviousBrokerEpoch(-1L);
    }
  }
}
