//! Tournament over runs: who has the smallest key, and who comes next.

/// A tournament of `k` players. `less` says whether one player's current key comes before another's; it must be a
/// strict total order (break ties by number), with exhausted players last.
#[derive(Debug)]
pub(super) struct LoserTree {
    /// Node 0: the winner. Node i ≥ 1: the loser of the match played there. The match above leaf p is node (k+p)/2.
    nodes: Vec<usize>,
}

impl LoserTree {
    /// Plays the whole tournament.
    pub(super) fn new(players: usize, less: impl Fn(usize, usize) -> bool) -> Self {
        // winners[i] for i in k..2k are the leaves
        let mut winners = vec![0; 2 * players.max(1)];
        let mut nodes = vec![0; players.max(1)];
        for player in 0..players {
            winners[players + player] = player;
        }
        for node in (1..players).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if less(b, a) { (b, a) } else { (a, b) };
            winners[node] = winner;
            nodes[node] = loser;
        }
        nodes[0] = if players > 1 { winners[1] } else { 0 };
        Self { nodes }
    }

    /// The player with the smallest key.
    pub(super) fn winner(&self) -> usize {
        self.nodes[0]
    }

    /// The player that would win without the winner; None with a single player.
    pub(super) fn runner_up(&self, less: impl Fn(usize, usize) -> bool) -> Option<usize> {
        let mut node = (self.nodes.len() + self.winner()) / 2;
        let mut best = None;
        while node >= 1 {
            let loser = self.nodes[node];
            if best.is_none_or(|best| less(loser, best)) {
                best = Some(loser);
            }
            node /= 2;
        }
        best
    }

    /// Plays the winner's matches again, after its key changed.
    pub(super) fn replay(&mut self, less: impl Fn(usize, usize) -> bool) {
        let mut winner = self.winner();
        let mut node = (self.nodes.len() + winner) / 2;
        while node >= 1 {
            if less(self.nodes[node], winner) {
                std::mem::swap(&mut self.nodes[node], &mut winner);
            }
            node /= 2;
        }
        self.nodes[0] = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_leave_in_key_order_and_the_runner_up_is_next() {
        for players in 1..=17 {
            let mut keys: Vec<u32> = (0..players).map(|p| (p * 7 + 3) as u32 % 11).collect();
            let mut tree = {
                let keys = &keys;
                LoserTree::new(players, |a, b| (keys[a], a) < (keys[b], b))
            };
            let mut left = Vec::new();
            let mut expected = keys.clone();
            expected.sort_unstable();
            let mut announced = None;
            for _ in 0..players {
                let winner = tree.winner();
                if let Some(announced) = announced {
                    assert_eq!(winner, announced);
                }
                left.push(keys[winner]);
                announced = tree.runner_up(|a, b| (keys[a], a) < (keys[b], b));
                keys[winner] = u32::MAX;
                tree.replay(|a, b| (keys[a], a) < (keys[b], b));
            }
            assert_eq!(left, expected, "{players} players");
        }
    }
}
