package insync.found.likely;

import java.io.File;
import java.io.IOException;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;

/** Writes Kafka's Partition with {@link Watch} in its byte code into a folder. */
public final class Instrument {
  private Instrument() {}

  /** The argument is the folder. */
  public static void main(String[] arguments) throws IOException {
    ClassFileLocator classPath = ClassFileLocator.ForClassLoader.ofSystemLoader();
    var type = TypePool.Default.of(classPath).describe("kafka.cluster.Partition").resolve();
    new ByteBuddy()
        .redefine(type, classPath)
        .visit(Advice.to(Watch.Leader.class).on(ElementMatchers.named("makeLeader")))
        .visit(Advice.to(Watch.Follower.class).on(ElementMatchers.named("makeFollower")))
        .make()
        .saveIn(new File(arguments[0]));
  }
}
