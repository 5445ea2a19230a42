package insync.plant;

import java.io.File;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;
import net.bytebuddy.implementation.ExceptionMethod;
import net.bytebuddy.implementation.FixedValue;
import net.bytebuddy.implementation.Implementation;
import net.bytebuddy.implementation.MethodCall;
import net.bytebuddy.implementation.StubMethod;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;
import org.apache.kafka.common.protocol.Errors;

/**
 * A mistake in one of Kafka's classes: a method that answers the same whatever it is asked, or does
 * something wrong before it is done or after ({@link Beforehand}, {@link Afterwards}, {@link
 * Elections}). The class is read from the class path and written, so changed, into a folder that is
 * to come before it there.
 */
public final class Plant {
  private Plant() {}

  /** The folder, the class, the method, and what it answers from now on. */
  public static void main(String[] given) throws Exception {
    ClassFileLocator locator = ClassFileLocator.ForClassLoader.ofSystemLoader();
    TypeDescription type = TypePool.Default.of(locator).describe(given[1]).resolve();
    ElementMatcher.Junction<MethodDescription> method =
        method(given[2]).and(ElementMatchers.isDeclaredBy(type));
    if (type.getDeclaredMethods().filter(method).isEmpty()) {
      System.err.println(given[1] + " has no method " + given[2]);
      System.exit(1);
    }
    Class<?> added = added(given[3]);
    DynamicType.Builder<?> changed = // also what Scala's compiler has made of a closure
        new ByteBuddy().ignore(ElementMatchers.none()).redefine(type, locator);
    changed =
        added == null
            ? changed.method(method).intercept(answer(given[3]))
            : changed.visit(Advice.to(added, locator).on(method));
    changed.make().saveIn(new File(given[0]));
  }

  /** The methods of this name, or with {@code name(Type)} the one that is first given such a value. */
  private static ElementMatcher.Junction<MethodDescription> method(String given) {
    String[] parts = given.split("[()]");
    ElementMatcher.Junction<MethodDescription> named = ElementMatchers.named(parts[0]);
    return parts.length == 1
        ? named
        : named.and(ElementMatchers.takesArgument(0, ElementMatchers.nameEndsWith("." + parts[1])));
  }

  /** The code that is put at the beginning or the end of a method; null for none. */
  private static Class<?> added(String word) {
    return switch (word) {
      case "first forgets its version" -> Beforehand.ForgetsVersion.class;
      case "then acknowledges" -> Afterwards.Acknowledges.class;
      case "then ends later" -> Afterwards.EndsLater.class;
      case "then commits" -> Afterwards.Commits.class;
      case "then keeps the ISR" -> Elections.KeepsIsr.class;
      case "then keeps the epoch" -> Elections.KeepsEpoch.class;
      case "then recovers nothing" -> Elections.RecoversNothing.class;
      case "then goes outside" -> Elections.GoesOutside.class;
      default -> null;
    };
  }

  private static Implementation answer(String word) throws NoSuchMethodException {
    return switch (word) {
      case "true" -> FixedValue.value(true);
      case "nothing" -> StubMethod.INSTANCE; // false, 0, null, or no effect
      case "throws" -> ExceptionMethod.throwing(IllegalStateException.class);
      case "no error" ->
          MethodCall.invoke(Errors.class.getMethod("valueOf", String.class)).with("NONE");
      case "empty list" -> MethodCall.invoke(List.class.getMethod("of"));
      case "no number" -> MethodCall.invoke(OptionalLong.class.getMethod("empty"));
      case "empty" -> MethodCall.invoke(Optional.class.getMethod("empty"));
      default ->
          MethodCall.invoke(ElementMatchers.named(word).and(ElementMatchers.takesNoArguments()));
    };
  }
}
