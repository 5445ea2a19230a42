package insync.kafka;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import jdk.internal.misc.Unsafe;

/** Private fields and methods of Kafka's classes, where it has no other entrance. */
final class Fields {
  private static final Unsafe UNSAFE = Unsafe.getUnsafe();

  private Fields() {}

  /** An object without a call of its constructor. */
  static <T> T allocate(Class<T> type) {
    try {
      return type.cast(UNSAFE.allocateInstance(type));
    } catch (InstantiationException problem) {
      throw new IllegalStateException(problem);
    }
  }

  static Object get(Object of, String name) {
    return UNSAFE.getReference(of, offset(of.getClass(), name));
  }

  static void set(Object of, String name, Object value) {
    UNSAFE.putReferenceVolatile(of, offset(of.getClass(), name), value);
  }

  static void set(Object of, String name, boolean value) {
    UNSAFE.putBooleanVolatile(of, offset(of.getClass(), name), value);
  }

  /** A class that is not public. */
  static Class<?> type(String name) {
    try {
      return Class.forName(name);
    } catch (ClassNotFoundException problem) {
      throw new IllegalStateException(problem);
    }
  }

  private static long offset(Class<?> type, String name) {
    for (Class<?> c = type; c != null; c = c.getSuperclass()) {
      for (Field field : c.getDeclaredFields()) {
        if (field.getName().equals(name)) {
          return UNSAFE.objectFieldOffset(field);
        }
      }
    }
    throw new IllegalStateException(type + " has no field " + name);
  }

  static Method method(Class<?> type, String name, Class<?>... parameters) {
    try {
      Method method = type.getDeclaredMethod(name, parameters);
      method.setAccessible(true);
      return method;
    } catch (NoSuchMethodException problem) {
      throw new IllegalStateException(problem);
    }
  }

  static Object call(Method method, Object on, Object... given) {
    try {
      return method.invoke(on, given);
    } catch (InvocationTargetException problem) {
      if (problem.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw new IllegalStateException(problem.getCause());
    } catch (IllegalAccessException problem) {
      throw new IllegalStateException(problem);
    }
  }
}
