//! Tests whether the means of two sets of runs differ, for sets too small for a rank test.

use super::{mean, stddev};

/// The two-sided probability that samples from one normal distribution differ in their means as much as
/// these two sets or more: Student's t-test for sets of equal size, else Welch's with the degrees of freedom
/// rounded down. 1 with fewer than two samples on either side, or with samples that are not finite.
pub fn t_test(left: &[f64], right: &[f64]) -> f64 {
    if left.len() < 2 || right.len() < 2 {
        return 1.0;
    }
    let error = |samples: &[f64]| stddev(samples).powi(2) / samples.len() as f64;
    let (a, b) = (error(left), error(right));
    let distance = (mean(left) - mean(right)).abs();
    if a + b == 0.0 {
        return if distance > 0.0 { 0.0 } else { 1.0 };
    }
    let freedom = |samples: &[f64]| (samples.len() - 1) as f64;
    let all = match left.len() == right.len() {
        // Equal numbers make this test hold for unequal variances, too.
        true => freedom(left) + freedom(right),
        false => (a + b).powi(2) / (a.powi(2) / freedom(left) + b.powi(2) / freedom(right)),
    };
    let t = distance / (a + b).sqrt();
    if t.is_finite() && all.is_finite() { two_tails(t, all.max(1.0) as u32) } else { 1.0 }
}

/// The probability of `t` or more, in either direction, with `freedom` degrees of freedom: a finite sum
/// over powers of a cosine, since they are whole.
fn two_tails(t: f64, freedom: u32) -> f64 {
    let angle = t.atan2(f64::from(freedom).sqrt());
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    // The factors of the terms are 2/3, 4/5 … or 1/2, 3/4 …
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = if freedom > 1 { term } else { 0.0 };
    let first = if is_odd { 3 } else { 2 };
    for next in (first..freedom).step_by(2) {
        term *= cosine.powi(2) * f64::from(next - 1) / f64::from(next);
        sum += term;
    }
    let within =
        if is_odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum };
    (1.0 - within).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, StudentsT};

    use super::*;

    #[test]
    fn tails_are_those_of_the_distribution() {
        for freedom in [1, 2, 3, 4, 5, 8, 9, 30, 31, 500] {
            let known = StudentsT::new(0.0, 1.0, f64::from(freedom)).unwrap();
            for t in [0.0, 0.1, 1.0, 2.5, 4.6, 13.0] {
                let expected = 2.0 * known.sf(t);
                let found = two_tails(t, freedom);
                assert!((found - expected).abs() < 1e-9, "{t}, {freedom}: {found}, {expected}");
            }
        }
    }

    #[test]
    fn sets_that_say_nothing_do_not_differ() {
        assert_eq!(t_test(&[], &[1.0, 2.0]), 1.0);
        assert_eq!(t_test(&[1.0], &[2.0]), 1.0);
        assert_eq!(t_test(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
        assert_eq!(t_test(&[1.0, 1.0], &[2.0, 2.0]), 0.0);
        assert_eq!(t_test(&[f64::NAN, 1.0], &[2.0, 2.0]), 1.0);
        assert_eq!(t_test(&[f64::INFINITY, 1.0], &[2.0, 2.5]), 1.0);
        assert!(t_test(&[1.0, 1.01, 0.99], &[2.0, 2.02, 1.98]) < 1e-4);
        // Both tests are symmetric.
        let (few, more) = ([1.0, 2.0, 3.0], [6.0, 7.0, 8.0, 7.0]);
        assert!((t_test(&few, &more) - t_test(&more, &few)).abs() < 1e-12);
    }
}
