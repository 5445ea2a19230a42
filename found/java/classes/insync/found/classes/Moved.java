package insync.found.classes;

import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** Classes that have another package, or another constructor, in Kafka 4.3 than in 4.4. */
public final class Moved {
  private Moved() {}

  /** The first of these names that this version of Kafka has. */
  public static Class<?> type(String... names) {
    for (String name : names) {
      try {
        return Class.forName(name);
      } catch (ClassNotFoundException e) {
        continue;
      }
    }
    throw new IllegalStateException("this version of Kafka has none of " + List.of(names));
  }

  /** The longest constructor that can be called with some of the candidates, each used once. */
  public static <T> T build(Class<T> type, Object... candidates) {
    return Stream.of(type.getConstructors())
        .sorted(Comparator.comparingInt(Constructor<?>::getParameterCount).reversed())
        .flatMap(
            constructor ->
                arguments(constructor, candidates).map(a -> call(constructor, a)).stream())
        .map(type::cast)
        .findFirst()
        .orElseThrow(() -> new IllegalStateException("no constructor fits: " + type));
  }

  /** The static method of that name that can be called with some of the candidates. */
  public static Object callStatic(Class<?> type, String name, Object... candidates) {
    return Stream.of(type.getMethods())
        .filter(m -> m.getName().equals(name) && Modifier.isStatic(m.getModifiers()))
        .flatMap(m -> arguments(m, candidates).map(a -> call(m, a)).stream())
        .findFirst()
        .orElseThrow(() -> new IllegalStateException("no method fits: " + type + "." + name));
  }

  private static Object call(Method method, Object[] arguments) {
    try {
      return method.invoke(null, arguments);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("cannot call " + method, e);
    }
  }

  private static Object call(Constructor<?> constructor, Object[] arguments) {
    try {
      return constructor.newInstance(arguments);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("cannot build " + constructor, e);
    }
  }

  private static Optional<Object[]> arguments(Executable callable, Object[] candidates) {
    Class<?>[] wanted = callable.getParameterTypes();
    Object[] arguments = new Object[wanted.length];
    boolean[] used = new boolean[candidates.length];
    for (int i = 0; i < wanted.length; i++) {
      int found = 0;
      while (found < candidates.length
          && (used[found] || !boxed(wanted[i]).isInstance(candidates[found]))) {
        found++;
      }
      if (found == candidates.length) {
        return Optional.empty();
      }
      used[found] = true;
      arguments[i] = candidates[found];
    }
    return Optional.of(arguments);
  }

  private static Class<?> boxed(Class<?> type) {
    if (type == int.class) {
      return Integer.class;
    }
    return type == long.class ? Long.class : type;
  }
}
