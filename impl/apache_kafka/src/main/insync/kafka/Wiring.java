package insync.kafka;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import scala.Option;

/**
 * Objects of Kafka's whose constructors differ between releases: each parameter gets the part that
 * is of its type.
 *
 * <p>What no part is of is something that is not needed here: an Option is empty, an interface does
 * nothing and answers nothing, and an object of a class has no fields, so that a call of it fails.
 */
final class Wiring {
  private static final Map<Class<?>, Object> IDLE = new HashMap<>();
  private static final Map<Class<?>, Class<?>> BOXES =
      Map.of(int.class, Integer.class, long.class, Long.class, boolean.class, Boolean.class);

  private Wiring() {}

  /** An object by the constructor with the most parameters. */
  static <T> T make(Class<T> type, Object... parts) {
    Constructor<?> widest =
        Arrays.stream(type.getConstructors())
            .max(Comparator.comparingInt(Constructor::getParameterCount))
            .orElseThrow();
    Object[] given = new Object[widest.getParameterCount()];
    for (int i = 0; i < given.length; i++) {
      given[i] = part(widest.getParameterTypes()[i], parts);
    }
    try {
      return type.cast(widest.newInstance(given));
    } catch (InvocationTargetException problem) {
      throw new IllegalStateException(type.getName(), problem.getCause());
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException(type.getName(), problem);
    }
  }

  private static Object part(Class<?> wanted, Object[] parts) {
    Class<?> type = BOXES.getOrDefault(wanted, wanted);
    for (Object part : parts) {
      if (type.isInstance(part)) {
        return part;
      }
    }
    if (type == Optional.class) {
      return Optional.empty();
    }
    if (type == Option.class) {
      return Option.empty();
    }
    if (type.isInterface()) {
      return idle(type);
    }
    if (wanted.isPrimitive() || Modifier.isAbstract(type.getModifiers())) {
      throw new IllegalStateException("there is no part for " + wanted.getName());
    }
    return Fields.allocate(type);
  }

  /** What answers every call with the same. */
  static Object answering(Class<?> type, Object answer) {
    return Proxy.newProxyInstance(
        Wiring.class.getClassLoader(), new Class<?>[] {type}, (self, method, given) -> answer);
  }

  /** What does nothing, and answers null, zero or false. */
  private static Object idle(Class<?> type) {
    return IDLE.computeIfAbsent(
        type,
        t ->
            Proxy.newProxyInstance(
                Wiring.class.getClassLoader(),
                new Class<?>[] {t},
                (self, method, given) -> nothing(method.getReturnType())));
  }

  private static Object nothing(Class<?> type) {
    if (type == boolean.class) {
      return false;
    }
    if (type == int.class) {
      return 0;
    }
    return type == long.class ? (Object) 0L : null;
  }
}
