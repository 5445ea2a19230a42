package insync.found.units;

import insync.found.NotTried;
import insync.found.Story;
import java.util.ArrayList;
import java.util.List;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.opentest4j.AssertionFailedError;

/**
 * Runs unit tests of found/upstream, each of which fails for one reason where Kafka has the bug.
 * LOST: at least one fails, each that fails does so for its reason, and the others pass. HELD: all
 * pass. Whatever else a test does is no verdict: another assertion, an exception, or not to run.
 */
public final class UnitTests {
  private UnitTests() {}

  /** Arguments: pairs of a test, Class#method, and the message of the assertion that fails. */
  public static void main(String[] arguments) throws Exception {
    Story.play(UnitTests.class, arguments, control -> outcome(arguments));
  }

  private static Story.Outcome outcome(String[] arguments) throws NotTried {
    boolean fails = false;
    for (int at = 0; at + 1 < arguments.length; at += 2) {
      fails |= fails(arguments[at], arguments[at + 1]);
    }
    return fails ? Story.Outcome.LOST : Story.Outcome.HELD;
  }

  private static boolean fails(String test, String reason) throws NotTried {
    LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(DiscoverySelectors.selectMethod(test))
            .build();
    List<TestExecutionResult> results = new ArrayList<>();
    LauncherFactory.create().execute(request, new Listener(results));
    if (results.size() != 1) {
      throw new NotTried(test + " ran " + results.size() + " times");
    }
    Throwable problem = results.get(0).getThrowable().orElse(null);
    if (results.get(0).getStatus() == TestExecutionResult.Status.SUCCESSFUL) {
      Story.step("%s passes", test);
      return false;
    }
    if (problem instanceof AssertionFailedError && reason.equals(problem.getMessage())) {
      Story.step("%s fails", test);
      Story.detail("%s", reason);
      return true;
    }
    throw new NotTried(test + " fails for another reason: " + problem);
  }

  /** Results of test methods, and of a class whose own set-up fails. */
  private record Listener(List<TestExecutionResult> results) implements TestExecutionListener {
    @Override
    public void executionFinished(TestIdentifier identifier, TestExecutionResult result) {
      if (identifier.isTest() || result.getStatus() != TestExecutionResult.Status.SUCCESSFUL) {
        results.add(result);
      }
    }
  }
}
