// Links of the navigation, which the palette offers too.
import {
  Bot,
  Boxes,
  Building2,
  ChartColumn,
  CreditCard,
  FolderCog,
  Gauge,
  History,
  KeyRound,
  Server,
  Users,
  type LucideIcon,
} from 'lucide-react';
import type { api } from '@berth/sdk';
import { mayIn } from '../../rules/access.ts';
import { PATHS } from '../../rules/paths.ts';
import { en } from '../../text/en.ts';

export interface OrgLink {
  name: string;
  Icon: LucideIcon;
  path: (orgId: string) => string;
}

export const ORG_LINKS: readonly OrgLink[] = [
  { name: en.nav.pages.overview, Icon: Gauge, path: PATHS.org },
  { name: en.nav.pages.sandboxes, Icon: Boxes, path: PATHS.sandboxes },
  { name: en.nav.pages.agents, Icon: Bot, path: PATHS.agentSessions },
  { name: en.nav.pages.activity, Icon: History, path: PATHS.activity },
  { name: en.nav.pages.usage, Icon: ChartColumn, path: PATHS.usage },
];

export const SETTINGS_LINKS: readonly OrgLink[] = [
  { name: en.nav.ofOrg.projects, Icon: FolderCog, path: PATHS.projects },
  { name: en.nav.ofOrg.members, Icon: Users, path: PATHS.members },
  { name: en.nav.ofOrg.apiKeys, Icon: KeyRound, path: PATHS.apiKeys },
  { name: en.nav.ofOrg.billing, Icon: CreditCard, path: PATHS.billing },
  { name: en.nav.ofOrg.org, Icon: Building2, path: PATHS.orgSettings },
];

const SERVICE_LINKS: readonly OrgLink[] = [{ name: en.nav.service, Icon: Server, path: PATHS.hosts }];

/** Pages about the service, for members of its operator's org. */
export const serviceLinks = (orgs: readonly api.Org[]): readonly OrgLink[] =>
  orgs.some((org) => mayIn(org, 'hosts.read')) ? SERVICE_LINKS : [];

export const SIGN_OUT = '/sign-out';

/** Pages outside the console. */
export const OUTER_LINKS = [
  ['/account', en.nav.outer.account],
  ['/sign-ins', en.nav.outer.signIns],
  ['/docs', en.nav.outer.reference],
  [SIGN_OUT, en.nav.outer.signOut],
] as const;
