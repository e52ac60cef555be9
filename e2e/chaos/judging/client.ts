// Sends one call of the public API for a client of the chaos run. Applies a timeout, and validates
// the response against the contract's schema and error list. A missing response or a service fault
// needs an excuse in the fault log.
import { errorEnvelope, type ErrorCode } from '@berth/contract/route/errors.ts';
import { EXEC_KEEPALIVE_MS, PREFERRED_WAIT_SECONDS } from '@berth/contract/route/limits.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { errorsOf, statusOf, type Route } from '@berth/contract/route/route.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { call, type Caller } from '../../world/client.ts';
import type { Report } from './report.ts';
import { AGENT_FAULTS, SHARED_FAULTS, VM_FAULTS, type FaultLog } from './faults.ts';

const ANSWER_DEADLINE_MS = 90_000;

export type Reply = { sentMs: number; receivedMs: number } & (
  | { kind: 'done'; body: unknown; headers: Headers }
  | { kind: 'refused'; code: ErrorCode; message: string }
  /** No response, or a service fault: the request may have been carried out or not. */
  | { kind: 'unknown'; code: ErrorCode | null; message: string; turnId?: string | undefined }
);

interface ChaosRequest {
  /** Name of the route in the contract. */
  route: string;
  sandboxId?: string;
  /** Other ids of the path. */
  params?: Readonly<Record<string, string>>;
  /** With its question mark. */
  query?: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** Service fault that an earlier request explains. */
  explained?: ErrorCode | undefined;
}

export class ChaosClient {
  readonly caller: Caller;
  readonly #faults: FaultLog;
  readonly #report: Report;

  constructor(caller: Caller, faults: FaultLog, report: Report) {
    this.caller = caller;
    this.#faults = faults;
    this.#report = report;
  }

  async send(question: ChaosRequest): Promise<Reply> {
    const route = routeNamed(question.route);
    const ids = { orgId: this.caller.orgId, sandboxId: question.sandboxId ?? '', ...question.params };
    const path = Object.entries(ids).reduce((left, [name, id]) => left.replace(`{${name}}`, id), route.path);
    const sentMs = Date.now();
    this.#report.counts.operations += 1;
    try {
      const answer = await call(this.caller, route.method, path + (question.query ?? ''), question.body, {
        // Holds the status of a long command until its end.
        headers: {
          ...(route.keepsAlive === true ? { prefer: `wait=${PREFERRED_WAIT_SECONDS.max}` } : {}),
          ...question.headers,
        },
        signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
      });
      const times = { sentMs, receivedMs: Date.now() };
      if (answer.status === route.response.status) {
        const parsed = route.response.body.safeParse(answer.body);
        if (!parsed.success)
          this.#report.found('contradiction', `${route.name} answered outside its schema: ${parsed.error.message}`);
        return { ...times, kind: 'done', body: answer.body, headers: answer.headers };
      }
      const { status } = answer;
      const { code, message, turnId } = this.#errorOf(route, status, answer.body);
      // The command of a late refusal may have run.
      const isLate = route.keepsAlive === true && times.receivedMs - sentMs >= EXEC_KEEPALIVE_MS.headersAfter;
      if (status < 500 && isLate) return { ...times, kind: 'unknown', code, message };
      if (status < 500) return { ...times, kind: 'refused', code, message };
      if (code === question.explained) this.#report.note(`${route.name} answered ${status} ${code}, as explained`);
      else this.#reportUnlessExcused(`${route.name} answered ${status} ${code}: ${message}`, times, question);
      return { ...times, kind: 'unknown', code, message, turnId };
    } catch (error) {
      const times = { sentMs, receivedMs: Date.now() };
      const cause = (error as Error).cause instanceof Error ? ((error as Error).cause as Error).message : '';
      const message = `${(error as Error).name}: ${(error as Error).message} ${cause}`;
      this.#reportUnlessExcused(`${route.name} got no answer: ${message}`, times, question);
      return { ...times, kind: 'unknown', code: null, message };
    }
  }

  #errorOf(
    route: Route,
    status: number,
    body: unknown,
  ): { code: ErrorCode; message: string; turnId?: string | undefined } {
    const { code, message, turnId } = errorEnvelope.parse(body).error;
    if (!errorsOf(route).has(code)) {
      this.#report.found(
        'contradiction',
        `${route.name} answered ${code}, which its contract does not list: ${message}`,
      );
    }
    if (statusOf(code) !== status)
      this.#report.found('contradiction', `${route.name} answered ${code} with status ${status}`);
    return { code, message, turnId };
  }

  #reportUnlessExcused(
    what: string,
    { sentMs, receivedMs }: { sentMs: number; receivedMs: number },
    { sandboxId }: ChaosRequest,
  ): void {
    if (
      this.#faults.excuses([...SHARED_FAULTS, ...VM_FAULTS, ...AGENT_FAULTS], sentMs, receivedMs, sandboxId ?? null)
    ) {
      this.#report.note(
        what
          .replaceAll(/(sbx|prj|org|ags|trn)_[a-z2-7]+/g, '$1')
          .replaceAll(/req\S*/g, '')
          .slice(0, 140),
      );
    } else {
      this.#report.found('contradiction', `without any trouble, ${what}`);
    }
  }
}

function routeNamed(name: string): Route {
  const route = ROUTES.find((candidate) => candidate.name === name);
  if (route === undefined) throw new Error(`the contract has no route ${name}`);
  return route;
}

/** The sandbox of a successful response. */
export function sandboxIn(reply: Reply & { kind: 'done' }): Sandbox {
  return (reply.body as { sandbox: Sandbox }).sandbox;
}
