// Admits a call: authenticates the caller, counts the request, decides access. Reads no body.
import type { Route } from '@berth/contract/route/route.ts';
import type { Logger } from 'pino';
import { requireFreshSignIn } from '../rules/access/fresh-sign-in.ts';
import { authorize, namedId, type PathNames } from '../services/access/access.ts';
import {
  authenticate,
  readToken,
  type Actor,
  type BearerToken,
  type NamedSandbox,
} from '../services/access/authentication.ts';
import type { AgentSessionRow } from '../services/agents/sessions.ts';
import type { LocatedSandboxRow } from '../services/sandboxes/sandboxes.ts';
import type { CallControl } from './control.ts';

/** The part of a call that decides whether it is admitted. */
export interface Admissible {
  /** As in the header `Authorization`: `Bearer <token>`. */
  credential: string | undefined;
  /** Network address of the caller; counts failed authentications. */
  address: string;
  requestId: string;
  /** Log of this call. Caller, org and error code become fields of it. */
  log: Logger;
  /** The request that makes this call is already counted. */
  counted?: true;
}

export interface Admission {
  actor: Actor;
  bearer: BearerToken;
  /** The org of the access decision, or of the API key. */
  orgId: string | undefined;
  /** The sandbox named by the path, or of the session, as of the access decision. */
  sandbox: LocatedSandboxRow | undefined;
  /** The agent session named by the path. */
  session: AgentSessionRow | undefined;
}

type AdmissibleCall = Admissible & { input: { params: PathNames } };

/** Throws the refusal. Adds the rate limit headers to `headers`. */
export async function admit(
  control: CallControl,
  route: Route,
  call: AdmissibleCall,
  headers: Record<string, string>,
): Promise<Admission> {
  const bearer = readBearer(control, call);
  const holder = control.failures.holder(call.address, bearer);
  return await control.admissions.run(holder, () => decide(control, route, call, bearer, headers));
}

/** Decides about an admitted call once more, without counting it. Throws the refusal. */
export async function readmit(control: CallControl, route: Route, call: AdmissibleCall): Promise<void> {
  const { params } = call.input;
  const { actor, named } = await identify(control, call, readBearer(control, call), namedId(params));
  await authorize(control.context, actor, route, params, named);
}

async function decide(
  control: CallControl,
  route: Route,
  call: AdmissibleCall,
  bearer: BearerToken,
  headers: Record<string, string>,
): Promise<Admission> {
  const { params } = call.input;
  const { actor, named } = await identify(control, call, bearer, namedId(params));
  call.log.setBindings({ caller: actor.id, callerKind: actor.kind });
  if (actor.kind === 'api_key') call.log.setBindings({ org: actor.orgId });
  if (call.counted !== true) await count(control, actor, headers);
  const orgId = await authorize(control.context, actor, route, params, named);
  if (route.freshSignIn === true) requireFreshSignIn(actor, control.context.settings);
  if (orgId !== undefined && actor.kind !== 'api_key') {
    call.log.setBindings({ org: orgId });
    // Only now: a stranger must not use up the requests of an org.
    await countForOrg(control, actor, orgId);
  }
  return {
    actor,
    bearer,
    orgId: orgId ?? (actor.kind === 'api_key' ? actor.orgId : undefined),
    sandbox: named.sandbox,
    session: named.session,
  };
}

async function count(control: CallControl, actor: Actor, headers: Record<string, string>): Promise<void> {
  const counted = control.requests.count(actor);
  Object.assign(headers, counted.headers);
  if (counted.refusal !== undefined) throw counted.refusal;
  // The key of a removed member is a stranger's.
  if (actor.kind === 'api_key' && actor.role !== null) await countForOrg(control, actor, actor.orgId);
}

async function countForOrg(control: CallControl, actor: Actor, orgId: string): Promise<void> {
  const { requests, orgRequests, orgPlans } = control;
  const refusal = orgRequests.count(orgId, await orgPlans.find(orgId));
  if (refusal === undefined) return;
  requests.refund(actor);
  throw refusal;
}

function readBearer({ failures }: CallControl, { credential, address }: Admissible): BearerToken {
  try {
    return readToken(credential);
  } catch (error) {
    failures.count(address);
    throw error;
  }
}

/** Authenticates the caller, unless its address has failed too often. */
async function identify(
  { context, failures }: CallControl,
  { address, requestId }: Admissible,
  bearer: BearerToken,
  named: string | null,
): Promise<{ actor: Actor; named: NamedSandbox }> {
  return await failures.guard(address, bearer, () => authenticate(context, { bearer, namedId: named, requestId }));
}
