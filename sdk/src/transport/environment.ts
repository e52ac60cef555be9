// Environment variables in Node, Bun and Deno; none in browsers.

interface Runtime {
  process?: { env?: Record<string, string | undefined> };
  Deno?: { env: { get(name: string): string | undefined } };
}

/** Returns undefined for an empty, missing or unreadable variable. */
export function readVariable(name: string): string | undefined {
  const { process, Deno } = globalThis as Runtime;
  try {
    return (process?.env?.[name] ?? Deno?.env.get(name)) || undefined;
  } catch {
    // Deno without the permission.
    return undefined;
  }
}
