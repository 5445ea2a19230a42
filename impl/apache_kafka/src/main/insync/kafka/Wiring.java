package insync.kafka;

import insync.objects.Fields;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import scala.Option;

/**
 * Objects and calls of Kafka's whose shapes differ between releases: each parameter gets the first
 * part of its type that no parameter before it got, or, where all have been given, the first.
 *
 * <p>What no part is of is something that is not needed here: an Option is empty, an interface does
 * nothing and answers nothing, and an object of a class has no fields, so that a call of it fails.
 */
public final class Wiring {
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
    try {
      return type.cast(widest.newInstance(arguments(widest, parts)));
    } catch (InvocationTargetException problem) {
      throw new IllegalStateException(type.getName(), problem.getCause());
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException(type.getName(), problem);
    }
  }

  /** What the method of this name with the most parameters answers. */
  public static Object call(Object on, String name, Object... parts) {
    Method widest =
        Arrays.stream(on.getClass().getDeclaredMethods())
            .filter(method -> method.getName().equals(name))
            .max(Comparator.comparingInt(Method::getParameterCount))
            .orElseThrow();
    widest.setAccessible(true);
    return Fields.call(widest, on, arguments(widest, parts));
  }

  private static Object[] arguments(Executable to, Object[] parts) {
    Object[] left = parts.clone();
    Object[] given = new Object[to.getParameterCount()];
    for (int i = 0; i < given.length; i++) {
      Class<?> wanted = to.getParameterTypes()[i];
      int at = first(wanted, left);
      given[i] = at < 0 ? part(wanted, parts) : left[at];
      if (at >= 0) {
        left[at] = null;
      }
    }
    return given;
  }

  private static int first(Class<?> wanted, Object[] parts) {
    Class<?> type = BOXES.getOrDefault(wanted, wanted);
    for (int i = 0; i < parts.length; i++) {
      if (type.isInstance(parts[i])) {
        return i;
      }
    }
    return -1;
  }

  private static Object part(Class<?> wanted, Object[] parts) {
    int again = first(wanted, parts);
    if (again >= 0) {
      return parts[again];
    }
    Class<?> type = BOXES.getOrDefault(wanted, wanted);
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
  static Object idle(Class<?> type) {
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
