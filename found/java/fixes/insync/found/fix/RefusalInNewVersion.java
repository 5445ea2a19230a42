package insync.found.fix;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import org.apache.kafka.controller.Refusals;

/**
 * ReplicationControlManager.alterPartition answers INELIGIBLE_REPLICA only together with a new
 * partition epoch, so that every earlier copy of the refused request is out of date.
 */
public final class RefusalInNewVersion {
  private RefusalInNewVersion() {}

  /** Adds the records to what the method returns. */
  @Advice.OnMethodExit
  public static void exit(
      @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
    result = Refusals.inNewVersion(result);
  }
}
