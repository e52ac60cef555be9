// The sandbox that a page is about.
import { createContext, useContext, type ReactNode } from 'react';
import type { api } from '@berth/sdk';
import { rolesThatMay } from '../../rules/access.ts';
import { ACTION_PERMISSIONS, possibilityOf, type SandboxUse } from '../../rules/sandbox-actions.ts';
import { en } from '../../text/en.ts';
import { InOrg, useOrgInView, type OrgInView } from '../frame/content.tsx';

const Sandbox = createContext<api.Sandbox | null>(null);

/** Content that is about a sandbox, and its org. */
export function InSandbox({ sandbox, children }: { sandbox: api.Sandbox; children: ReactNode }) {
  return (
    <InOrg value={sandbox.orgId}>
      <Sandbox value={sandbox}>{children}</Sandbox>
    </InOrg>
  );
}

interface SandboxInView extends OrgInView {
  sandbox: api.Sandbox;
  /** Why the use is not possible now; null if it is, or if the service decides. */
  whyNot: (use: SandboxUse) => string | null;
}

/** Why the use is not possible now; null if it is, or if the service decides. */
export function whyNot(use: SandboxUse, sandbox: api.Sandbox, org: api.Org | undefined): string | null {
  if (org === undefined) return null;
  return en.actions.why(possibilityOf(use, sandbox, org), rolesThatMay(ACTION_PERMISSIONS[use]));
}

export function useSandboxInView(): SandboxInView {
  const sandbox = useContext(Sandbox);
  const inView = useOrgInView();
  if (sandbox === null) throw new Error('the page is about no sandbox');
  return { ...inView, sandbox, whyNot: (use) => whyNot(use, sandbox, inView.org) };
}
