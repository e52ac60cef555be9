// Settings of an org: name, id, single sign-on, leaving it.
import { useQuery } from '@tanstack/react-query';
import type { api } from '@berth/sdk';
import { membersQuery } from '../../queries/members.ts';
import { meQuery, orgsQuery, renameOrg } from '../../queries/orgs.ts';
import { possibilityToChange } from '../../rules/members.ts';
import { en } from '../../text/en.ts';
import { membersText } from '../../text/members.ts';
import { settingsText as text } from '../../text/settings.ts';
import { Button, CopyValue, Facts, Notice, Page, Section } from '../../ui/kit/index.ts';
import { Loaded, useOrgInView } from '../frame/content.tsx';
import { NameForm } from '../me/name-form.tsx';
import { LeaveDialog } from '../members/dialogs.tsx';
import { Sso } from './sso.tsx';

export function OrgSettingsPage() {
  const { org } = useOrgInView();
  return (
    <Page title={text.title}>
      <Loaded query={useQuery(orgsQuery)}>
        {() =>
          org === undefined ? <Notice title={en.states.goneTitle} hint={en.states.gone} /> : <Settings org={org} />
        }
      </Loaded>
    </Page>
  );
}

function Settings({ org }: { org: api.Org }) {
  const { refusalOf } = useOrgInView();
  const refusal = refusalOf('org.owners.manage');
  return (
    <>
      <NameForm
        text={text}
        name={org.name}
        sent="body.name"
        reason={refusalOf('org.update')}
        send={(name) => renameOrg(org.id, name)}
      />
      <Section title={en.sandbox.facts}>
        <Facts
          of={{
            [text.id]: <CopyValue value={org.id} what={text.what} />,
            [text.role]: membersText.role(org.role),
          }}
        />
      </Section>
      <Section title={text.sso.title}>
        <p>{text.sso.hint}</p>
        {refusal === null ? <Sso /> : <p>{refusal}</p>}
      </Section>
      <Leave org={org} />
    </>
  );
}

function Leave({ org }: { org: api.Org }) {
  const { data: members = [] } = useQuery(membersQuery(org.id));
  const { data: me } = useQuery(meQuery);
  const own = members.find(({ userId }) => userId === me?.id);
  const isLast = own !== undefined && possibilityToChange(own, members, org, true).kind === 'last-owner';
  return (
    <Section title={text.leave}>
      <p>{membersText.leaveWords.hint}</p>
      <Button kind="danger" reason={isLast ? membersText.lastOwner : null} dialog={<LeaveDialog />}>
        {membersText.leaveWords.submit}
      </Button>
    </Section>
  );
}
