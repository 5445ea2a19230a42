package insync.note;

import insync.node.Flushed;
import java.io.File;
import java.io.IOException;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import org.apache.kafka.common.record.internal.FileRecords;

/**
 * Writes Kafka's FileRecords, the file of a segment, with notes of what it flushed ({@link
 * Flushed}) into a folder that is to come before Kafka's jars. What it does is unchanged.
 */
public final class Note {
  private static final String TYPE = "org.apache.kafka.common.record.internal.FileRecords";

  private Note() {}

  /** The argument is the folder. */
  public static void main(String[] arguments) throws IOException {
    ClassFileLocator locator = ClassFileLocator.ForClassLoader.ofSystemLoader();
    var type = TypePool.Default.of(locator).describe(TYPE).resolve();
    for (String method : new String[] {"flush", "truncateTo"}) {
      if (type.getDeclaredMethods().filter(ElementMatchers.named(method)).isEmpty()) {
        System.err.println(TYPE + " has no method " + method);
        System.exit(1);
      }
    }
    new ByteBuddy()
        .redefine(type, locator)
        .visit(Advice.to(Flush.class).on(ElementMatchers.named("flush")))
        .visit(Advice.to(Truncate.class).on(ElementMatchers.named("truncateTo")))
        .make()
        .saveIn(new File(arguments[0]));
  }

  /** Around flush(): what was there before it is durable after it, if it does not throw. */
  static final class Flush {
    private Flush() {}

    @Advice.OnMethodEnter
    static int enter(@Advice.This FileRecords segment) {
      return segment.sizeInBytes();
    }

    @Advice.OnMethodExit
    static void exit(@Advice.This FileRecords segment, @Advice.Enter int size) {
      Flushed.note(segment.file(), size);
    }
  }

  /** After truncateTo(). */
  static final class Truncate {
    private Truncate() {}

    @Advice.OnMethodExit
    static void exit(@Advice.This FileRecords segment) {
      Flushed.truncated(segment.file(), segment.sizeInBytes());
    }
  }
}
