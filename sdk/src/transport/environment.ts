// Reads the environment, where there is one: Node, Bun and Deno. In a browser there is none.

interface Runtime {
  process?: { env?: Record<string, string | undefined> };
  Deno?: { env: { get(name: string): string | undefined } };
}

/** The value of a variable; undefined when it is empty, missing, or may not be read. */
export function readVariable(name: string): string | undefined {
  const { process, Deno } = globalThis as Runtime;
  try {
    return (process?.env?.[name] ?? Deno?.env.get(name)) || undefined;
  } catch {
    // Deno without the permission to read it.
    return undefined;
  }
}
