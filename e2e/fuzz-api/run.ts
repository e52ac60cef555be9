// Executes a run from its seed: sends requests generated from the document alone, and compares
// every response with the document.
import fc from 'fast-check';
import { committedDocument, readOperations } from './document.ts';
import { judge, type SentAnswer } from './judge.ts';
import { Known } from './known.ts';
import { ApiFuzzReport } from './report.ts';
import { ready, requests, type PlannedRequest, type ReadyRequest } from './request.ts';

interface Target {
  url: string;
  /** By the names of the document's security schemes. */
  tokens: Readonly<Record<string, string>>;
  /** Called between batches; returns existing objects in the form of a response. */
  tidy(): Promise<unknown>;
}

export interface ApiFuzzOptions {
  seed: string;
  runs: number;
  clients: number;
  target: Target;
  say: (line: string) => void;
  signal: AbortSignal;
  /** Absent: the document of the checkout. */
  document?: string;
}

/** Longer than any response may take. */
const HUNG_AFTER_MS = 90_000;
const BATCH = 24;
const SHOWN_CHARACTERS = 400;

export async function runApiFuzz(options: ApiFuzzOptions): Promise<ApiFuzzReport> {
  const { seed, runs, clients, target, signal } = options;
  const operations = readOperations(options.document ?? committedDocument());
  const report = new ApiFuzzReport(operations, options.say);
  const known = new Known();
  const arbitrary = requests(operations);
  for (let batch = 0; report.requests < runs && !signal.aborted; batch += 1) {
    const planned = fc.sample(arbitrary, {
      seed: numberOf(`${seed}.${batch}`),
      numRuns: Math.min(BATCH, runs - report.requests),
    });
    // Begins with operations that return ids, which all others need.
    if (batch === 0) {
      for (const operation of operations)
        if (operation.method === 'GET') planned.unshift({ ...plainRequest(operation) });
    }
    const next = planned.values();
    await Promise.all(
      Array.from({ length: clients }, async () => {
        for (const one of next) {
          if (signal.aborted) return;
          await sendOne(one, known, target, report);
        }
      }),
    );
    known.learn(await target.tidy());
    if (batch % 10 === 9) report.say(`${report.requests} requests, ${report.findings.length} findings`);
  }
  return report;
}

/** A request with its required parts only. */
function plainRequest(operation: PlannedRequest['operation']): PlannedRequest {
  return { operation, parameters: [], body: null, credential: { pick: 0, kind: 'known' } };
}

async function sendOne(planned: PlannedRequest, known: Known, target: Target, report: ApiFuzzReport): Promise<void> {
  const { operation } = planned;
  const request = ready(planned, known, target.tokens);
  report.requests += 1;
  const what = `${operation.id}: ${request.method} ${request.target} ${request.body ?? ''}`.slice(0, SHOWN_CHARACTERS);
  let answer: SentAnswer;
  try {
    answer = await exchange(target.url, request);
  } catch (error) {
    report.found('hung', `${what}: ${String(error)}`);
    return;
  }
  const { fault, value } = judge(operation, request, answer);
  report.answered(operation, answer.status, answer.status < 400 ? '' : ` ${codeOf(value)}`);
  if (fault !== null)
    report.found(fault.kind, `${what}: ${answer.status}, ${fault.why}: ${answer.text.slice(0, SHOWN_CHARACTERS)}`);
  known.learn(value);
}

async function exchange(url: string, { method, target, headers, body }: ReadyRequest): Promise<SentAnswer> {
  const response = await fetch(url + target, {
    method,
    headers,
    // GET and HEAD have no body.
    ...(body === undefined || method === 'GET' ? {} : { body }),
    signal: AbortSignal.timeout(HUNG_AFTER_MS),
  });
  return { status: response.status, type: response.headers.get('content-type') ?? '', text: await response.text() };
}

function codeOf(value: unknown): string {
  return (value as { error?: { code?: string } } | undefined)?.error?.code ?? '';
}

/** A numeric seed for the library, from any text. */
function numberOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return hash | 0;
}
