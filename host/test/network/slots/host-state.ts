// Traces of slots on the host, for tests: names in the kernel and files in the registry.
import { readdirSync, readFileSync } from 'node:fs';

const REGISTRY_FOLDER = '/run/berth/slots';

interface HostState {
  namespaces: number[];
  devices: number[];
  entries: number[];
  drafts: string[];
}

/** Slot numbers by kind of trace, ascending. */
export function hostState(): HostState {
  const devices = readFileSync('/proc/self/net/dev', 'utf8').split('\n');
  const registry = readdirSync(REGISTRY_FOLDER);
  return {
    namespaces: numbers(readdirSync('/run/netns'), /^berth(\d+)$/),
    devices: numbers(devices, /^\s*bv(\d+):/),
    entries: numbers(registry, /^(\d+)$/),
    drafts: registry.filter((name) => name.startsWith('.draft')),
  };
}

/** The state when exactly these slots exist. */
export function only(...slots: number[]): HostState {
  const sorted = [...slots].sort((a, b) => a - b);
  return { namespaces: sorted, devices: sorted, entries: sorted, drafts: [] };
}

function numbers(names: readonly string[], pattern: RegExp): number[] {
  return names.flatMap((name) => pattern.exec(name)?.slice(1, 2).map(Number) ?? []).sort((a, b) => a - b);
}
