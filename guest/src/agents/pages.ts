// Pages of a session's replies and turns, from its files. A page has at least one entry.
import { AGENT_PAGE, AGENT_TEXT_UNITS } from '@berth/protocol/agent-errors.ts';
import type { GuestReply, GuestTurn, GuestTurnText } from '@berth/protocol/agents.ts';
import type { SessionReader } from '../bridge/files.ts';

export function pageOfReplies(
  reader: SessionReader,
  after: number,
  limit: number,
): { replies: GuestReply[]; hasMore: boolean } {
  const replies: GuestReply[] = [];
  let units = 0;
  let hasMore = false;
  reader.replies(after, (reply) => {
    units += reply.text.length;
    hasMore = replies.length >= Math.min(limit, AGENT_PAGE.replies) || (units > AGENT_TEXT_UNITS && replies.length > 0);
    if (!hasMore) replies.push(reply);

    return !hasMore;
  });
  return { replies, hasMore };
}

/** @param current a recorded turn, as it is now */
export function pageOfTurns(
  reader: SessionReader,
  { after, limit }: { after: number; limit: number },
  current: (turn: GuestTurn) => GuestTurn,
): { turns: GuestTurnText[]; hasMore: boolean } {
  const { turns } = reader.history();
  const page: GuestTurnText[] = [];
  let units = 0;
  let hasMore = false;
  reader.messages(after, ({ number, turnId, author, text }) => {
    const turn = turns.get(turnId);
    // The bridge was killed between message and turn.
    if (turn?.number !== number) return true;

    units += text.length;
    hasMore = page.length >= limit || (units > AGENT_TEXT_UNITS && page.length > 0);
    if (!hasMore) page.push({ ...current(turn), number, author, text });

    return !hasMore;
  });
  return { turns: page, hasMore };
}
