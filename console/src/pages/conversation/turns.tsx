// Turns of a conversation: prompts of all participants and replies of the agent, as plain text.
import { memo, useState } from 'react';
import type { api } from '@berth/sdk';
import type { ShownTurn } from '../../rules/agents/conversation.ts';
import { nameOf } from '../../rules/members.ts';
import { visibleLines, visibleText } from '../../rules/visible-text.ts';
import { conversationText as text } from '../../text/conversation.ts';
import { Button, Time, Untrusted } from '../../ui/kit/index.ts';
import css from '../agents/agents.module.css';

/** Longer texts begin folded. */
const FOLDED_CHARACTERS = 6_000;

interface TurnProps {
  shown: ShownTurn;
  agent: string;
  members: readonly api.Member[];
}

/** Replies are only added, and dropped from the front. */
const versionOf = ({ shown: { state, replies } }: TurnProps): string =>
  [state?.state, replies.length, replies.at(-1)?.seq].join();

export const Turn = memo(
  TurnOnce,
  (old, now) => old.members === now.members && versionOf(old) === versionOf(now) && old.shown.turn === now.shown.turn,
);

function TurnOnce({ shown: { turn, state, replies }, agent, members }: TurnProps) {
  return (
    <li className={css.turn}>
      {turn === null ? null : (
        <article className={css.prompt}>
          <p className={css.by}>
            <Untrusted text={authorOf(turn, members)} /> · <Time at={turn.startedAt} />
          </p>
          <Words words={turn.text} />
        </article>
      )}
      {replies.map(({ seq, at, text: words, truncated }) => (
        <article key={seq} className={css.reply}>
          <p className={css.by}>
            <Untrusted text={agent} /> · <Time at={at} />
          </p>
          <Words words={words} />
          {truncated ? <p className={css.hint}>{text.truncated}</p> : null}
        </article>
      ))}
      {state === null || state.state === 'completed' ? null : (
        <p className={state.state === 'failed' ? css.failed : css.hint}>
          {visibleText(text.turnEnd(state.state, state.reason))}
        </p>
      )}
    </li>
  );
}

function authorOf({ author }: api.AgentTurnWithMessage, members: readonly api.Member[]): string {
  return author === null ? text.someone : text.author(nameOf(members, author.userId) ?? author.userId, author.kind);
}

/** A guest's text in its lines. Nothing in it is a link, an image or a style. */
function Words({ words }: { words: string }) {
  const [folded, setFolded] = useState(words.length > FOLDED_CHARACTERS);
  return (
    <>
      <div className={css.words} dir="auto">
        {visibleLines(folded ? words.slice(0, FOLDED_CHARACTERS) : words)}
      </div>
      {folded ? <Button onClick={() => setFolded(false)}>{text.unfold(words.length)}</Button> : null}
    </>
  );
}
