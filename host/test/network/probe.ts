// Probes addresses from a network namespace, concurrently, and reports each result. A module, and a
// program: `probe.ts JSON MILLISECONDS` prints the results as JSON.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { fileURLToPath } from 'node:url';

export interface ProbeTarget {
  address: string;
  port: number;
}

export interface ProbeResult extends ProbeTarget {
  /** Name of the responder; null: no response. */
  answeredBy: string | null;
  /** Source address seen by the target. */
  seenAs: string | null;
  /** Error code, or `timeout`. */
  error: string | null;
}

/** Timeout for targets that drop packets. */
const CLOSED_MS = 2_000;
/** Timeout for targets that must respond: longer than any test server takes on a busy host. */
export const UP_MS = 120_000;

/** Probes each target by HTTP from this process. */
export function probeHere(targets: readonly ProbeTarget[], timeoutMs = CLOSED_MS): Promise<ProbeResult[]> {
  return Promise.all(targets.map((target) => probe(target, timeoutMs)));
}

/** Probes each target from a namespace. */
export async function probeFrom(
  namespacePath: string,
  targets: readonly ProbeTarget[],
  timeoutMs = CLOSED_MS,
): Promise<ProbeResult[]> {
  const program = [process.execPath, fileURLToPath(import.meta.url), JSON.stringify(targets), String(timeoutMs)];
  const child = spawn('nsenter', [`--net=${namespacePath}`, ...program], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`The probe ended with ${code}`);
  return JSON.parse(output) as ProbeResult[];
}

function probe(target: ProbeTarget, timeoutMs: number): Promise<ProbeResult> {
  const { promise, resolve } = Promise.withResolvers<ProbeResult>();
  const fail = (error: string) => resolve({ ...target, answeredBy: null, seenAs: null, error });
  const request = get({ host: target.address, port: target.port, timeout: timeoutMs, agent: false }, (response) => {
    let body = '';
    response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    response.on('error', (error) => fail(error.message));
    response.on('end', () => {
      const { name, from } = JSON.parse(body) as { name: string; from: string };
      resolve({ ...target, answeredBy: name, seenAs: from, error: null });
    });
  });
  request.on('timeout', () => request.destroy(Object.assign(new Error('timeout'), { code: 'timeout' })));
  request.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
  return promise;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(
    JSON.stringify(await probeHere(JSON.parse(process.argv[2] ?? '') as ProbeTarget[], Number(process.argv[3]))),
  );
}
