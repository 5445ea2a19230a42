package insync.found.likely;

import java.io.File;
import java.io.IOException;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;

/**
 * Writes Kafka's Partition with {@link Watch} or {@link Proposals} in its byte code into a folder.
 */
public final class Instrument {
  private Instrument() {}

  /** The arguments are the folder, and "proposals" for these. */
  public static void main(String[] arguments) throws IOException {
    ClassFileLocator classPath = ClassFileLocator.ForClassLoader.ofSystemLoader();
    var type = TypePool.Default.of(classPath).describe("kafka.cluster.Partition").resolve();
    var partition = new ByteBuddy().redefine(type, classPath);
    var becomesLeader = ElementMatchers.named("makeLeader");
    var commits = ElementMatchers.named("maybeIncrementLeaderHW");
    var becomesFollower = ElementMatchers.named("makeFollower");
    var changed =
        arguments.length > 1 && arguments[1].equals("proposals")
            ? partition
                .visit(Advice.to(Proposals.Leader.class).on(becomesLeader))
                .visit(Advice.to(Proposals.Commit.class).on(commits))
            : partition
                .visit(Advice.to(Watch.Leader.class).on(becomesLeader))
                .visit(Advice.to(Watch.Follower.class).on(becomesFollower));
    changed.make().saveIn(new File(arguments[0]));
  }
}
