//! Decides whether two sets of runs differ, by ranks alone: it assumes no distribution.
//!
//! The crate statrs, which serves as a test oracle, is not used: its exact answer enumerates all orders
//! (10^14 for 25 runs against 25), and if the first set is the smaller, version 0.19 returns the
//! complement.

/// If the product of the numbers of samples is greater, the normal approximation is exact enough.
const EXACT_PAIRS_MAX: usize = 2_500;

/// The two-sided probability that samples of one source differ as much as these two sets or more
/// (Mann-Whitney). It is exact for few samples without ties; otherwise it uses the normal approximation
/// with corrections for ties and continuity. 1 if either set is empty.
pub fn mann_whitney(left: &[f64], right: &[f64]) -> f64 {
    if left.is_empty() || right.is_empty() {
        return 1.0;
    }
    let ranked = Ranked::of(left, right);
    if ranked.ties == 0.0 && left.len() * right.len() <= EXACT_PAIRS_MAX {
        return exact(ranked.u as usize, left.len(), right.len());
    }
    normal(&ranked, left.len() as f64, right.len() as f64)
}

struct Ranked {
    /// The number of pairs in which `left` is greater; a tie counts half.
    u: f64,
    /// Sum of t³ − t over groups of t equal samples.
    ties: f64,
}

impl Ranked {
    fn of(left: &[f64], right: &[f64]) -> Ranked {
        let mut u = 0.0;
        for a in left {
            for b in right {
                u += if a > b {
                    1.0
                } else if a == b {
                    0.5
                } else {
                    0.0
                };
            }
        }
        let mut all: Vec<f64> = left.iter().chain(right).copied().collect();
        all.sort_by(f64::total_cmp);
        let ties = all
            .chunk_by(|a, b| a == b)
            .map(|group| {
                let equal = group.len() as f64;
                equal.powi(3) - equal
            })
            .sum();
        Ranked { u, ties }
    }
}

/// Counts the orders of n + m samples that have each U, by recurrence over the side of the greatest
/// sample.
fn exact(u: usize, n: usize, m: usize) -> f64 {
    let most = n * m;
    // `ways[j][u]`: the share of the orders of i left and j right samples that have this U.
    let mut ways = vec![vec![0.0; most + 1]; m + 1];
    for row in &mut ways {
        row[0] = 1.0;
    }
    for i in 1..=n {
        for j in 0..=m {
            let mut next = vec![0.0; most + 1];
            let (i_share, j_share) = (i as f64 / (i + j) as f64, j as f64 / (i + j) as f64);
            for (value, slot) in next.iter_mut().enumerate() {
                // If the greatest sample is of the left, it beats all j of the right.
                let of_left = if value >= j { ways[j][value - j] } else { 0.0 };
                let of_right = if j > 0 { ways[j - 1][value] } else { 0.0 };
                *slot = i_share * of_left + j_share * of_right;
            }
            ways[j] = next;
        }
    }
    let low = u.min(most - u);
    let tail: f64 = ways[m][..=low].iter().sum();
    (2.0 * tail).min(1.0)
}

fn normal(ranked: &Ranked, n: f64, m: f64) -> f64 {
    let all = n + m;
    let variance = n * m / 12.0 * ((all + 1.0) - ranked.ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = ((ranked.u - n * m / 2.0).abs() - 0.5).max(0.0);
    two_tails(distance / variance.sqrt())
}

/// The probability of a distance of `z` standard deviations or more, in either direction: the
/// complementary error function, by its continued fraction or its series, whichever is exact there.
fn two_tails(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    if x < 2.5 {
        let (mut term, mut sum, mut k) = (x, x, 0.0);
        while term.abs() > 1e-17 * sum.abs().max(1e-300) {
            k += 1.0;
            term *= -x * x / k;
            sum += term / (2.0 * k + 1.0);
        }
        return (1.0 - 2.0 / std::f64::consts::PI.sqrt() * sum).clamp(0.0, 1.0);
    }
    let mut fraction = x;
    for k in (1..=60).rev() {
        fraction = x + f64::from(k) / 2.0 / fraction;
    }
    (-x * x).exp() / std::f64::consts::PI.sqrt() / fraction
}
